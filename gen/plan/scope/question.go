package scope

// question is something that only a scope knows, and that it answers by yes or no.
type question struct {
	about     topic
	namespace string
	host      string
	alias     string // of ofAlias and ofLabel
}

// topic says what a question is about.
type topic byte

const (
	ofPlace     topic = iota // is the scope of the namespace?
	ofImport                 // does it import the host in the namespace?
	ofExclusion              // does it exclude the host in the namespace?
	ofAlias                  // does what imports the host import its alias too?
	ofWidth                  // is it the default scope?
	ofLabel                  // have its proxies the label that host names, with the value that alias is?
)

// inquiry is what was asked of a scope.
type inquiry struct{ list []reply }

// reply is a question with its answer.
type reply struct {
	question
	yes bool
}

// maxAsked is how many questions an Alike asks before it gives up: then making the thing is not dearer.
const maxAsked = 64

// note adds a question with its answer, once. More than maxAsked are of no use.
func (i *inquiry) note(q question, yes bool) {
	if len(i.list) > maxAsked {
		return
	}
	for at := range i.list {
		if i.list[at].question == q {
			return
		}
	}
	i.list = append(i.list, reply{q, yes})
}

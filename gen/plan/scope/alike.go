package scope

// Alike keeps what was made for scopes in one step, by what they answered while it was made: a scope that answers alike
// gets what is there. What it imports and where it is does not matter else, so Sidecars that import different hosts
// share what they have in common, and what is asked of each is what the unit asked and no more.
//
//	imports a/one?  ─ no ──► nothing
//	                └ yes ─► is of namespace b? ─ no ──► this virtual host
//	                                            └ yes ─► that one, with short names
//
// What is made must depend on the scope by its Traits and its methods alone; the caller keeps an Alike for all scopes
// of equal Traits. The zero Alike is empty. Owned by the config goroutine.
type Alike[T any] struct {
	root *answered[T]
	kept int
}

// answered is a question and what follows from its answers, or what was made when there were no more.
type answered[T any] struct {
	question question
	next     [2]*answered[T]
	made     T
	end      bool
}

// maxKept is how many different things an Alike keeps: beyond, scopes hardly ever answer alike.
const maxKept = 1 << 10

// Get returns what was made for a scope that answers as sc does, or what is made for sc now.
func (a *Alike[T]) Get(sc *Scope, make func(sc *Scope) T) T {
	at := a.root
	for at != nil && !at.end {
		at = at.next[index(sc.answer(&at.question))]
	}
	if at != nil {
		return at.made
	}
	asked := *sc
	asked.asked = &inquiry{}
	made := make(&asked)
	if list := asked.asked.list; len(list) <= maxAsked && a.kept < maxKept {
		a.keep(list, made)
	}
	return made
}

// Len returns how many different things there are.
func (a *Alike[T]) Len() int { return a.kept }

// keep puts what was made where its answers lead. Nothing is kept where other questions were asked after the same
// answers: none are, but for those whose order nobody promises.
func (a *Alike[T]) keep(list []reply, made T) {
	at := &a.root
	for i := range list {
		switch {
		case *at == nil:
			*at = &answered[T]{question: list[i].question}
		case (*at).end || (*at).question != list[i].question:
			return
		}
		at = &(*at).next[index(list[i].yes)]
	}
	if *at == nil {
		*at = &answered[T]{made: made, end: true}
		a.kept++
	}
}

func index(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

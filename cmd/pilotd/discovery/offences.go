package discovery

import (
	"fmt"
	"strings"

	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/shard"
)

// shortSum is how many characters of a content version are shown: enough for people to tell two apart.
const shortSum = 8

// problemOf converts an offence to a problem of the object that determines most of what was refused. The problem names
// the content, so that a later version that is refused too is a new problem.
func problemOf(o shard.Offence) report.Problem {
	p := report.Problem{Resource: o.Resource(), Cause: report.ClientRefused}
	p.Reason = fmt.Sprintf("a client refused what was made of it (content %s); it is held back from those that refuse it",
		o.Sum.String()[:shortSum])
	if len(o.Objects) > 0 {
		p.Key = o.Objects[0]
	}
	if len(o.Objects) > 1 {
		var others []string
		for _, k := range o.Objects[1:] {
			others = append(others, k.String())
		}
		p.Reason += "; made of it and of " + strings.Join(others, ", ")
	}
	return p
}

// refused reports what a client refused. Workers call it. It does not block.
func (s *Server) refused(r *shard.Refusal) {
	for _, o := range r.Offences {
		s.Reports.Refuse(problemOf(o), r.Proxy.ID, r.Message)
	}
}

// healed withdraws the reports of offences that affect no client any more.
func (s *Server) healed(offences []shard.Offence) {
	for _, o := range offences {
		s.Reports.Heal(problemOf(o))
	}
}

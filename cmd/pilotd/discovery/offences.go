package discovery

import (
	"fmt"
	"strings"

	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/shard"
)

// shortSum is how many characters of a content version tell two of them apart for people.
const shortSum = 8

// problemOf returns an offence as the registry of problems has it: of the object that says most of what was refused.
// Its content is named, so that a next version of it that is refused too is another problem.
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

// refused reports what a client refused. It is called by the workers and does not block.
func (s *Server) refused(r *shard.Refusal) {
	for _, o := range r.Offences {
		s.Reports.Refuse(problemOf(o), r.Proxy.ID, r.Message)
	}
}

// healed takes back what was reported of offences that no client is kept from any more.
func (s *Server) healed(offences []shard.Offence) {
	for _, o := range offences {
		s.Reports.Heal(problemOf(o))
	}
}

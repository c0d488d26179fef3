package discovery

import (
	"strings"

	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/shard"
	"github.com/pilotd/pilotd/snapshot/value"
)

// leftOut tells the registry what is left out of the resources made from an object, or not served to every proxy, in
// place of what it was told before. Any goroutine that makes resources calls it. It does not block.
func (s *Server) leftOut(o value.ObjectKey, list []checked.Fault) {
	problems := make([]report.Problem, 0, len(list))
	for _, f := range list {
		p := report.Problem{Key: o, Cause: report.LeftOut, Reason: strings.TrimPrefix(f.Field+": "+f.Reason, ": "),
			Resource: f.Resource}
		switch {
		case f.Panicked:
			p.Cause = report.Panicked
		case f.NotServed:
			p.Cause, p.Field, p.Reason = report.NotServed, f.Field, f.Reason
		}
		problems = append(problems, p)
	}
	s.Reports.Set(report.Subject{Owner: "plan", Key: o}, problems)
}

const (
	// faultRate bounds how many panics of stream handling are logged in a second in the long run, faultBurst how many
	// at once: the client whose stream ended with one comes back.
	faultRate  = 0.1
	faultBurst = 10
)

// contained counts a panic that was recovered while a stream was handled, and logs it with its stack. It does not
// block.
func (s *Server) contained(f shard.Fault) {
	s.Metrics.InternalErrors.Inc()
	if !s.faults.Allow() {
		return
	}
	proxy := ""
	if f.Proxy != nil {
		proxy = f.Proxy.ID
	}
	s.log.Error("a panic was caught", "doing", f.Doing, "proxy", proxy, "panic", f.Value, "stack", string(f.Stack))
}

package plan

import (
	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/gen/plan/gateway"
	"github.com/pilotd/pilotd/gen/plan/inbound"
	"github.com/pilotd/pilotd/gen/plan/outbound"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// Tables hold what was generated from each Key, for all classes and shards of a process. Safe for concurrent use. Each
// room has its own.
type Tables struct {
	outbound.Tables
	faults   *checked.Faults
	trims    *scope.Trims
	inbound  inbound.Tables
	gateways gateway.Tables
	sources  sources
	sections sectionPools
}

// sectionPools find what the sections of different bases have in common, so that they hold it as the same chunks.
type sectionPools struct {
	clusters, listeners, routes *chunked.Pool[*encodecache.Entry]
	assignments                 *chunked.Pool[*classes.Assignment]
	hosts                       *chunked.Pool[*encodecache.Fragment]
}

func newSectionPools() sectionPools {
	return sectionPools{
		clusters:    chunked.NewPool[*encodecache.Entry](),
		listeners:   chunked.NewPool[*encodecache.Entry](),
		routes:      chunked.NewPool[*encodecache.Entry](),
		assignments: chunked.NewPool[*classes.Assignment](),
		hosts:       chunked.NewPool[*encodecache.Fragment](),
	}
}

// Faults returns what is left out now. Anyone may call it.
func (t *Tables) Faults() checked.Count { return t.faults.Count() }

// LimitRegex sets the largest RE2 program of a regular expression that upstream Envoys take, in place of
// envoytext.UpstreamRegexSize. It must be called before the Tables are used.
func (t *Tables) LimitRegex(size int) {
	t.Tables.LimitRegex(size)
	t.inbound.LimitRegex(size)
}

// NewTables makes empty Tables.
func NewTables() *Tables {
	f := checked.NewFaults()
	t := &Tables{
		Tables:   outbound.NewTables(f),
		faults:   f,
		trims:    scope.NewTrims(),
		inbound:  inbound.NewTables(f),
		gateways: gateway.NewTables(f),
		sources:  newSources(f),
		sections: newSectionPools(),
	}
	t.inbound.LimitRegex(t.RegexSize)
	return t
}

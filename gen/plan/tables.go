package plan

import (
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/envoytext"
	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/gen/plan/endpoints"
	"github.com/pilotd/pilotd/gen/plan/inbound"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// Tables hold what was generated from each Key, for all classes and shards of a process. Safe for concurrent use. Each
// noun has its own tables, in its own file.
type Tables struct {
	trims     *scope.Trims
	clusters  clusterTables
	endpoints endpoints.Tables
	inbound   inbound.Tables
	listeners listenerTables
	routes    routeTables
	gateways  gatewayTables
	sections  sectionPools
	faults    *checked.Faults
	// regexSize is the largest RE2 program of a regular expression that upstream Envoys take. LimitRegex sets it before
	// use.
	regexSize int
}

// LimitRegex sets the largest RE2 program of a regular expression that upstream Envoys take, in place of
// envoytext.UpstreamRegexSize. It must be called before the Tables are used.
func (t *Tables) LimitRegex(size int) { t.regexSize = size }

// sectionPools find what the sections of different bases have in common, so that they hold it as the same chunks.
type sectionPools struct {
	clusters, listeners, routes *chunked.Pool[*encodecache.Entry]
	assignments                 *chunked.Pool[*Assignment]
	hosts                       *chunked.Pool[*encodecache.Fragment]
}

func newSectionPools() sectionPools {
	return sectionPools{
		clusters:    chunked.NewPool[*encodecache.Entry](),
		listeners:   chunked.NewPool[*encodecache.Entry](),
		routes:      chunked.NewPool[*encodecache.Entry](),
		assignments: chunked.NewPool[*Assignment](),
		hosts:       chunked.NewPool[*encodecache.Fragment](),
	}
}

// Faults is what is left out now. Anyone may call it.
func (t *Tables) Faults() checked.Count { return t.faults.Count() }

// NewTables makes empty Tables.
func NewTables() *Tables {
	f := checked.NewFaults()
	return &Tables{
		faults:    f,
		trims:     scope.NewTrims(),
		clusters:  newClusterTables(f),
		endpoints: endpoints.NewTables(),
		inbound:   inbound.NewTables(f),
		listeners: newListenerTables(f),
		routes:    newRouteTables(f),
		gateways:  newGatewayTables(f),
		sections:  newSectionPools(),
		regexSize: envoytext.UpstreamRegexSize,
	}
}

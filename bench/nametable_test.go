package bench

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// BenchmarkNameTable is what the name table adds to a change: of a service that comes or goes, of one that changes, of
// a route, and of the endpoints of a service with an address, where nobody asks for the table and where ten namespaces
// do. It fails where a route or such endpoints change a table.
func BenchmarkNameTable(b *testing.B) {
	for _, services := range upTo(1000, 10_000) {
		for _, asked := range []bool{false, true} {
			b.Run(fmt.Sprintf("services=%d/asked=%v", services, asked), func(b *testing.B) {
				p := planValues(valueMesh{services: services, namespaces: 10})
				defer p.stop()
				p.attach(b, 10)
				if asked {
					for id := range uint64(10) {
						p.planner.Want(id+1, xdstype.NameTable)
					}
					p.settle(b)
				}
				list := slices.DeleteFunc(edits(), func(e edit) bool {
					return !slices.Contains([]string{"service", "serviceentry", "virtualservice"}, e.kind)
				})
				for _, e := range append(list, endpointsEdit()) {
					b.Run(e.kind, func(b *testing.B) {
						before := p.tables()
						p.bench(b, e)
						if !e.names() && p.tables() != before {
							b.Error("it changed a name table")
						}
					})
				}
			})
		}
	}
}

// names reports whether an edit changes what names there are.
func (e edit) names() bool { return e.kind == "service" || e.kind == "serviceentry" }

// endpointsEdit adds an endpoint to a service, or takes it away.
func endpointsEdit() edit {
	return edit{"endpoints", func(m valueMesh, n int) *snapshottest.Batch {
		list := []*value.Endpoint{{Addresses: []string{"10.0.0.1"}}, {Addresses: []string{"10.0.0.2"}}}
		return &snapshottest.Batch{Endpoints: map[value.ServiceKey][]*value.Endpoint{m.key(50): list[:1+n%2]}}
	}}
}

// tables returns the versions of all name tables.
func (p *valuePlanner) tables() (versions string) {
	var list []string
	for _, w := range p.sets {
		for _, e := range w.Sections.Of(xdstype.NameTable).All() {
			list = append(list, e.Version())
		}
	}
	slices.Sort(list)
	return fmt.Sprint(list)
}

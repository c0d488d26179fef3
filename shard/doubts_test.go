package shard

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/xdstype"
)

// What is kept of nodes that have left does not depend on how long their ids are, and is bounded.
func TestDoubtsKeepNoNames(t *testing.T) {
	const nodes = 100
	id := func(i int) string { return fmt.Sprint(strings.Repeat("x", 512<<10), i) }
	d := newDoubts()
	before := liveBytes()
	for i := range nodes {
		d.add(id(i), xdstype.Cluster)
	}
	if n := liveBytes() - before; n > 1<<20 {
		t.Errorf("%d nodes that left keep %d bytes", nodes, n)
	}
	if !d.of(id(7)).Has(xdstype.Cluster) || d.of(id(7)).Has(xdstype.Route) || d.of(id(nodes)) != 0 {
		t.Error("the nodes are not known again")
	}
	d.remove(id(7), xdstype.Cluster)
	if d.of(id(7)) != 0 {
		t.Error("a node is not forgotten")
	}
	for i := range 2 * maxDoubts {
		d.add(fmt.Sprint(i), xdstype.Cluster)
	}
	if len(d.byNode) > maxDoubts || len(d.order) > maxDoubts {
		t.Errorf("%d nodes are kept", len(d.byNode))
	}
}

func liveBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

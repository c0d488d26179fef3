package shard

import (
	"testing"
	"testing/synctest"

	"github.com/pilotd/pilotd/classes"
)

// Endpoints that need a ResourceSet come with it: nobody sees them before the ResourceSet, and nobody sees the old ones
// after it.
func TestEndpointsComeWithTheirResourceSet(t *testing.T) {
	withFleet(t, 1, func(f *fleet) {
		f.table("x=1 y=1")
		sets := map[*classes.Class]*classes.ResourceSet{}
		var all []*fakeStream
		w, next := f.set("x=1 y=1", ""), f.set("x=2 y=1", "")
		for i := range 4 {
			c := class(nodeName(i))
			s := f.connect(nodeName(i)).place(c, w)
			s.take()
			s.endpoints("x", "y").take()
			all, sets[c] = append(all, s), next
		}
		all[0].onReceive = func() { f.postTable("y=2") } // while the worker is in the middle of it
		f.shards.Advanced(sets, f.endpointsOf("x=2"))
		synctest.Wait()
		for _, s := range all {
			expect(t, "each gets", s.take(), "CDS x=2; EDS x=2") // y=2 waits for the ACK
		}
	})
}

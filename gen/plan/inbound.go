package plan

import (
	"slices"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// inbound is what a class has of its own, in place of what its base has or beside it. Nearly every workload is a class,
// so that this is made to be small. Immutable.
type inbound struct {
	entries []*encodecache.Entry // clusters and listeners
	omit    []string             // listeners of the base that the class has not
}

// inboundOf computes the own part of a class. What is as in old, which may be nil, is taken from there.
func (t *Tables) inboundOf(b *base, own *Own, old *inbound) *inbound {
	if b.scope.Traits.Type == value.Router {
		return &inbound{}
	}
	clusters := t.inboundClusters(b.snap, b.scope, own)
	listeners, omit := t.inboundListeners(b.snap, b.scope, own)
	in := &inbound{slices.Concat(clusters, listeners), omit}
	if old == nil {
		return in
	}
	for i, e := range in.entries {
		for _, o := range old.entries {
			if o.TypeURL() == e.TypeURL() && o.Name() == e.Name() && o.Sum() == e.Sum() {
				in.entries[i] = o
			}
		}
	}
	return in
}

// edits make the base's resources of a type the class's.
func (in *inbound) edits(typeURL string) (out []chunked.Edit[*encodecache.Entry]) {
	if typeURL == xdstype.ListenerURL {
		for _, name := range in.omit {
			out = append(out, chunked.Edit[*encodecache.Entry]{Key: name, Delete: true})
		}
	}
	for _, e := range in.entries {
		if e.TypeURL() == typeURL && !e.Absent() {
			out = append(out, chunked.Edit[*encodecache.Entry]{Key: e.Name(), Value: e})
		}
	}
	return out
}

package inbound

import (
	"slices"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// Overlay is what the proxies of a class have of their own, in place of what their Scope's resources have or beside
// them. Nearly every workload is a class, so that this is made to be small. Immutable.
type Overlay struct {
	entries []*encodecache.Entry // clusters and listeners
	omit    []string             // listeners of the Scope that the class has not
}

// Overlay makes the overlay of a class. sees reports whether the class's Scope has a service of a host. What is as in
// old, which may be nil, is taken from there.
func (t *Tables) Overlay(n *snapshot.Snapshot, f *Facts, sees func(host string) bool, old *Overlay) *Overlay {
	if f.Traits.Type == value.Router {
		return &Overlay{}
	}
	m := &maker{t, n, f, sees}
	clusters := m.clusters()
	listeners, omit := m.listeners()
	out := &Overlay{slices.Concat(clusters, listeners), omit}
	if old == nil {
		return out
	}
	for i, e := range out.entries {
		for _, o := range old.entries {
			if o.TypeURL() == e.TypeURL() && o.Name() == e.Name() && o.Sum() == e.Sum() {
				out.entries[i] = o
			}
		}
	}
	return out
}

// Edits returns the edits that make the resources of a type that the Scope has those of the class.
func (o *Overlay) Edits(t xdstype.Type) (out []chunked.Edit[*encodecache.Entry]) {
	if t == xdstype.Listener {
		for _, name := range o.omit {
			out = append(out, chunked.Edit[*encodecache.Entry]{Key: name, Delete: true})
		}
	}
	for _, e := range o.entries {
		if e.TypeURL() == t.URL() && !e.Absent() {
			out = append(out, chunked.Edit[*encodecache.Entry]{Key: e.Name(), Value: e})
		}
	}
	return out
}

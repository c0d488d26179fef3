package ingest

import (
	"slices"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

type set[K comparable] map[K]struct{}

func (s set[K]) add(k K) { s[k] = struct{}{} }

// groups are sets by key; a group that becomes empty is dropped.
type groups[K, V comparable] map[K]set[V]

func (g groups[K, V]) add(k K, v V) {
	if g[k] == nil {
		g[k] = set[V]{}
	}
	g[k].add(v)
}

func (g groups[K, V]) remove(k K, v V) {
	if delete(g[k], v); len(g[k]) == 0 {
		delete(g, k)
	}
}

// lists are small sets by key, without order.
type lists[K, V comparable] map[K][]V

func (l lists[K, V]) add(k K, v V) {
	if !slices.Contains(l[k], v) {
		l[k] = append(l[k], v)
	}
}

func (l lists[K, V]) remove(k K, v V) {
	i := slices.Index(l[k], v)
	switch n := len(l[k]); {
	case i < 0:
	case n == 1:
		delete(l, k)
	default:
		l[k][i] = l[k][n-1]
		l[k] = slices.Delete(l[k], n-1, n)
	}
}

// index is how a key's values are kept: in groups or lists.
type index[K, V comparable] interface {
	add(K, V)
	remove(K, V)
}

// change adds v to what x has under k, or removes it.
func change[K, V comparable](x index[K, V], k K, v V, in bool) {
	if in {
		x.add(k, v)
	} else {
		x.remove(k, v)
	}
}

// marks say what the next flush computes anew.
type marks struct {
	mesh       bool
	namespaces set[string]
	rules      set[value.ObjectKey]
	// hosts are services to define anew, endpoints included.
	hosts set[value.ServiceKey]
	// sets are services whose endpoints are joined anew.
	sets      set[value.ServiceKey]
	addresses set[string]
}

func newMarks() marks {
	return marks{
		namespaces: set[string]{}, rules: set[value.ObjectKey]{}, hosts: set[value.ServiceKey]{},
		sets: set[value.ServiceKey]{}, addresses: set[string]{},
	}
}

// published is what the Builder has.
type published struct {
	namespaces  map[string]*value.Namespace
	services    map[value.ServiceKey]*value.Service
	virtual     map[value.ObjectKey]*value.VirtualService
	rules       map[value.ObjectKey]*value.DestinationRule
	gateways    map[value.ObjectKey]*value.Gateway
	sidecars    map[value.ObjectKey]*value.Sidecar
	projections map[value.ServiceKey]*value.Projection
	endpoints   map[value.ServiceKey][]*value.Endpoint
	workloads   map[string]*value.Workload
}

func newPublished() published {
	return published{
		namespaces: map[string]*value.Namespace{}, services: map[value.ServiceKey]*value.Service{},
		virtual: map[value.ObjectKey]*value.VirtualService{}, rules: map[value.ObjectKey]*value.DestinationRule{},
		gateways: map[value.ObjectKey]*value.Gateway{}, sidecars: map[value.ObjectKey]*value.Sidecar{},
		projections: map[value.ServiceKey]*value.Projection{}, endpoints: map[value.ServiceKey][]*value.Endpoint{},
		workloads: map[string]*value.Workload{},
	}
}

// equaler is a value that compares itself with its predecessor.
type equaler[V any] interface {
	*V
	Equal(*V) bool
}

// settle puts next in the place of its predecessor, and into out if it differs from that. nil deletes.
func settle[K comparable, V any, P equaler[V]](old map[K]P, out *map[K]P, k K, next P) {
	prev := old[k]
	switch {
	case next == nil && prev == nil, next != nil && prev != nil && next.Equal(prev):
		return
	case next == nil:
		delete(old, k)
	default:
		old[k] = next
	}
	if *out == nil {
		*out = map[K]P{}
	}
	(*out)[k] = next
}

// flush computes what is marked and returns what differs, nil if nothing does. What cannot be computed, for a fault,
// stays as it was.
func (w *world) flush() *snapshot.Batch {
	m := w.marks
	w.marks = newMarks()
	b := &snapshot.Batch{}
	if m.mesh {
		b.Mesh = w.mesh
	}
	for ns := range m.namespaces {
		settle(w.published.namespaces, &b.Namespaces, ns, w.namespaces[ns])
	}
	for key := range m.rules {
		w.faults.contain(deriving, key, func() { w.flushRule(key, b) })
	}
	for host := range m.hosts {
		if w.faults.contain(deriving, w.definedBy(host),
			func() { settle(w.published.services, &b.Services, host, w.service(host)) }) {
			m.sets.add(host)
		}
	}
	for host := range m.sets {
		key := w.definedBy(host)
		key.Kind = value.KindEndpointSlice // Another unit than the service.
		w.faults.contain(deriving, key, func() { w.flushEndpoints(host, b) })
	}
	for a := range m.addresses {
		w.faults.contain(deriving, value.ObjectKey{Kind: value.KindPod, Name: a},
			func() { settle(w.published.workloads, &b.Workloads, a, w.workloadAt(a)) })
	}
	if b.EndpointsOnly() && len(b.Endpoints)+len(b.Workloads) == 0 {
		return nil
	}
	return b
}

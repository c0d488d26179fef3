package ingest

import (
	"slices"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

type set[K comparable] map[K]struct{}

func (s set[K]) add(k K) { s[k] = struct{}{} }

// groups maps each key to a set. It drops a set that becomes empty.
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

// lists maps each key to a small set, kept as an unordered list.
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

// index is what groups and lists have in common.
type index[K, V comparable] interface {
	add(K, V)
	remove(K, V)
}

// change adds v to the values of k in x, or removes it.
func change[K, V comparable](x index[K, V], k K, v V, in bool) {
	if in {
		x.add(k, v)
	} else {
		x.remove(k, v)
	}
}

// marks are what the next flush computes anew.
type marks struct {
	mesh bool
	// objects are those whose values are recomputed.
	objects set[value.ObjectKey]
	// hosts are the services that are recomputed, with their endpoints.
	hosts set[value.ServiceKey]
	// sets are the services whose endpoints are joined again.
	sets      set[value.ServiceKey]
	addresses set[string]
}

func newMarks() marks {
	return marks{
		objects: set[value.ObjectKey]{}, hosts: set[value.ServiceKey]{}, sets: set[value.ServiceKey]{},
		addresses: set[string]{},
	}
}

// published is the state that the Builder has, kept so that each change can be sent with the old value. The Delta of a
// flush takes it from one state to the next.
type published struct {
	objects     latest[value.ObjectKey, value.Value]
	services    latest[value.ServiceKey, *value.Service]
	projections latest[value.ServiceKey, *value.Projection]
	endpoints   latest[value.ServiceKey, *snapshot.EndpointSet]
	workloads   latest[string, *value.Workload]
}

func newPublished() published {
	return published{
		objects: latest[value.ObjectKey, value.Value]{}, services: latest[value.ServiceKey, *value.Service]{},
		projections: latest[value.ServiceKey, *value.Projection]{},
		endpoints:   latest[value.ServiceKey, *snapshot.EndpointSet]{},
		workloads:   latest[string, *value.Workload]{},
	}
}

// latest maps keys to the values that the Builder has.
type latest[K, V comparable] map[K]V

// put replaces the value of k by next and adds the pair of old and new to changes. If the two are equal it does
// nothing. The zero value of V deletes k.
func (had latest[K, V]) put(changes *snapshot.Changes[K, V], k K, next V, equal func(a, b V) bool) {
	var none V
	old := had[k]
	switch {
	case old == next, old != none && next != none && equal(old, next):
		return
	case next == none:
		delete(had, k)
	default:
		had[k] = next
	}
	changes.Add(k, old, next)
}

// flush computes what is marked and returns what changed, nil if nothing did. If computing one of the marked things
// panics, it stays as it was.
func (j *joiner) flush() *snapshot.Delta {
	m, had := j.marks, &j.published
	j.marks = newMarks()
	d := &snapshot.Delta{}
	if m.mesh {
		d.All, d.Mesh = true, j.mesh
	}
	for key := range m.objects {
		j.faults.contain(deriving, key, func() { j.flushObject(key, d) })
	}
	for host := range m.hosts {
		if j.faults.contain(deriving, j.definedBy(host),
			func() { had.services.put(&d.Services, host, j.service(host), (*value.Service).Equal) }) {
			m.sets.add(host)
		}
	}
	for host := range m.sets {
		key := j.definedBy(host)
		key.Kind = value.KindEndpointSlice // reported apart from faults in the service itself
		j.faults.contain(deriving, key, func() { j.flushEndpoints(host, d) })
	}
	for a := range m.addresses {
		j.faults.contain(deriving, value.ObjectKey{Kind: value.KindPod, Name: a},
			func() { had.workloads.put(&d.Workloads, a, j.workloadAt(a), (*value.Workload).Equal) })
	}
	if d.Empty() {
		return nil
	}
	return d
}

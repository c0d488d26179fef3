package ingest

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// joint is the joined list of the endpoints of all slices of one Service, and the part that each slice gave to it, so
// that a change of one slice out of many can be patched in. All lists are immutable and in canonical order.
type joint struct {
	parts map[objectName][]*value.Endpoint
	list  []*value.Endpoint
	// clean says that no address is in two parts, so that every endpoint of each part is in list unchanged.
	clean bool
}

// sliceEndpoints returns the endpoints of all slices of a Service. An address that is in several slices counts once for
// each port, with its best health.
func (j *joiner) sliceEndpoints(key objectName, svc *corev1.Service) []*value.Endpoint {
	prev := j.joints[key]
	if prev == nil {
		prev = &joint{clean: true}
	}
	next := &joint{parts: map[objectName][]*value.Endpoint{}, clean: prev.clean}
	stale := j.staleEndpoints(key, prev)
	var out, in []*value.Endpoint
	for name := range j.slicesByService[key] {
		s := j.slices[name]
		if !s.valid {
			s.built, s.valid = keep(s.built, keep(stale, j.buildSlice(s, svc))), true
		}
		next.parts[name] = s.built
		if was := prev.parts[name]; !sameList(was, s.built) {
			out, in = append(out, was...), append(in, s.built...)
		}
	}
	for name, was := range prev.parts {
		if _, ok := next.parts[name]; !ok {
			out = append(out, was...)
		}
	}
	if !prev.clean || !next.patch(prev.list, out, in) {
		next.join()
	}
	j.joints[key] = next
	if len(next.parts) == 0 {
		delete(j.joints, key)
	}
	return next.list
}

// staleEndpoints returns the endpoints that prev has from slices that have changed or gone, in canonical order. The new
// list takes equal endpoints from it by pointer, also those that Kubernetes moved to another slice.
func (j *joiner) staleEndpoints(key objectName, prev *joint) (out []*value.Endpoint) {
	lists := 0
	for name, was := range prev.parts {
		if s := j.slices[name]; s == nil || !s.valid || s.owner() != key {
			out = append(out, was...)
			lists++
		}
	}
	if lists > 1 {
		slices.SortFunc(out, compareEndpoints)
	}
	return out
}

// sameList reports whether a and b are the same slice in memory.
func sameList(a, b []*value.Endpoint) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// join builds list from all parts.
func (j *joint) join() {
	var all []*value.Endpoint
	for _, part := range j.parts {
		all = append(all, part...)
	}
	slices.SortFunc(all, compareEndpoints)
	j.list, j.clean = all, true
	for i := 1; i < len(all) && j.clean; i++ {
		j.clean = all[i-1].Addresses[0] != all[i].Addresses[0]
	}
	if !j.clean {
		j.list = once(all)
	}
}

// patch builds list from its predecessor, without the endpoints in out and with those in in. It changes nothing and
// reports false if an address would then be in two parts.
func (j *joint) patch(list, out, in []*value.Endpoint) bool {
	kept, ok := without(list, out)
	if !ok {
		return false
	}
	slices.SortFunc(in, compareEndpoints)
	next, from := make([]*value.Endpoint, 0, len(kept)+len(in)), 0
	for _, e := range in {
		i, _ := slices.BinarySearchFunc(kept, e, compareEndpoints)
		next, from = append(next, kept[from:i]...), i
		if n := len(next); n > 0 && next[n-1].Addresses[0] == e.Addresses[0] || i < len(kept) &&
			kept[i].Addresses[0] == e.Addresses[0] {
			return false
		}
		next = append(next, e)
	}
	j.list = append(next, kept[from:]...)
	return true
}

// without returns list without the endpoints in out, compared by pointer. It reports false if one is not in list.
func without(list, out []*value.Endpoint) ([]*value.Endpoint, bool) {
	gone := make([]int, 0, len(out))
	for _, e := range out {
		i, _ := slices.BinarySearchFunc(list, e, compareEndpoints)
		for i < len(list) && list[i] != e && compareEndpoints(list[i], e) == 0 {
			i++
		}
		if i == len(list) || list[i] != e {
			return nil, false
		}
		gone = append(gone, i)
	}
	slices.Sort(gone)
	kept, from := make([]*value.Endpoint, 0, len(list)), 0
	for _, i := range gone {
		kept, from = append(kept, list[from:i]...), i+1
	}
	return append(kept, list[from:]...), true
}

// once drops ports that an earlier endpoint of the same address has, and endpoints that are left without ports.
func once(sorted []*value.Endpoint) []*value.Endpoint {
	out, first := sorted[:0], 0
	for _, e := range sorted {
		if len(out) > 0 && out[first].Addresses[0] != e.Addresses[0] {
			first = len(out)
		}
		if rest := unseen(e, out[min(first, len(out)):]); rest != nil {
			out = append(out, rest)
		}
	}
	return out
}

// unseen returns e without the ports that others have; nil if no port is left.
func unseen(e *value.Endpoint, others []*value.Endpoint) *value.Endpoint {
	taken := func(p value.EndpointPort) bool {
		return slices.ContainsFunc(others, func(o *value.Endpoint) bool {
			return slices.ContainsFunc(o.Ports, func(q value.EndpointPort) bool { return q.Name == p.Name })
		})
	}
	if len(others) == 0 || !slices.ContainsFunc(e.Ports, taken) {
		return e
	}
	rest := *e
	if rest.Ports = slices.DeleteFunc(slices.Clone(e.Ports), taken); len(rest.Ports) == 0 {
		return nil
	}
	return &rest
}

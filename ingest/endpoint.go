package ingest

import (
	"cmp"
	"maps"
	"slices"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

func comparePorts(a, b value.EndpointPort) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Port, b.Port))
}

// compareEndpoints defines the canonical order: by address, and for one address the healthiest first.
func compareEndpoints(a, b *value.Endpoint) int {
	if a == b {
		return 0
	}
	return cmp.Or(
		slices.Compare(a.Addresses, b.Addresses), cmp.Compare(a.Health, b.Health), cmp.Compare(a.Pod, b.Pod),
		slices.CompareFunc(a.Ports, b.Ports, comparePorts), cmp.Compare(a.Weight,
			b.Weight), cmp.Compare(a.Locality.String(), b.Locality.String()),
		cmp.Compare(a.Identity.Value().Workload, b.Identity.Value().Workload), cmp.Compare(a.Identity.Value().LabelsKey,
			b.Identity.Value().LabelsKey))
}

// endpoints returns the endpoints of a host from all objects that define it, in canonical order. The list may be
// shared, so callers must not write it.
func (j *joiner) endpoints(host value.ServiceKey) []*value.Endpoint {
	keys := j.hosts[host]
	if len(keys) == 1 {
		return j.serviceSources[keys[0]].endpoints(j, host)
	}
	var all []*value.Endpoint
	for _, key := range keys {
		all = append(all, j.serviceSources[key].endpoints(j, host)...)
	}
	slices.SortFunc(all, compareEndpoints)
	return all
}

// flushEndpoints computes the endpoints and the projection of a host and adds what changed to d. A changed projection
// is always sent together with the endpoints, even if these are the same.
func (j *joiner) flushEndpoints(host value.ServiceKey, d *snapshot.Delta) {
	had := &j.published
	old := had.endpoints[host]
	next := keep(old.All(), j.endpoints(host))
	before := had.projections[host]
	had.projections.put(&d.Projections, host, j.projection(host, next), (*value.Projection).Equal)
	moved := had.projections[host] != before
	had.endpoints.put(&d.Endpoints, host, snapshot.NewEndpointSet(next), func(a, b *snapshot.EndpointSet) bool {
		return !moved && slices.Equal(a.Endpoints, b.Endpoints)
	})
}

// keep returns next, with the pointers of old wherever the content is equal, or old itself if everything is. Both lists
// are in canonical order. keep writes neither.
func keep(old, next []*value.Endpoint) []*value.Endpoint {
	i, kept, owned := 0, 0, false
	for j, e := range next {
		for i < len(old) && old[i] != e && compareEndpoints(old[i], e) < 0 {
			i++
		}
		if i == len(old) || !old[i].Equal(e) {
			continue
		}
		if old[i] != e {
			if !owned {
				next, owned = slices.Clone(next), true
			}
			next[j] = old[i]
		}
		i++
		kept++
	}
	if kept == len(old) && kept == len(next) {
		return old
	}
	return next
}

// projection returns what the Snapshot stores about the endpoints of a host; nil if the host is not defined or has no
// endpoints.
func (j *joiner) projection(host value.ServiceKey, endpoints []*value.Endpoint) *value.Projection {
	svc := j.published.services[host]
	if svc == nil || len(endpoints) == 0 {
		return nil
	}
	accounts, last := set[string]{}, ""
	for _, e := range endpoints {
		if a := e.Identity.Value().ServiceAccount; a != last {
			accounts.add(a)
			last = a
		}
	}
	delete(accounts, "")
	p := &value.Projection{Any: true, ServiceAccounts: slices.Sorted(maps.Keys(accounts)),
		MutualTLS: mutualTLS(endpoints)}
	if svc.Resolution != value.ClientSideLB {
		p.Inline = endpoints
	}
	return p
}

// mutualTLS returns the ports at which all endpoints accept mutual TLS.
func mutualTLS(endpoints []*value.Endpoint) []string {
	speak := map[string]bool{}
	var last *value.Endpoint
	for _, e := range endpoints {
		if last != nil && last.Identity == e.Identity && slices.Equal(last.Ports, e.Ports) {
			continue
		}
		last = e
		tls := e.Identity.Value().TLSMode != tlsDisabled
		for _, p := range e.Ports {
			other, known := speak[p.Name]
			speak[p.Name] = tls && (other || !known)
		}
	}
	maps.DeleteFunc(speak, func(_ string, tls bool) bool { return !tls })
	return slices.Sorted(maps.Keys(speak))
}

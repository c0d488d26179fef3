package nametable

import (
	"cmp"
	"iter"
	"slices"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/gen/plan/source"
	"github.com/pilotd/pilotd/snapshot/value"
)

// hostKeys are the Keys of the names of a host, and of those of its pods. The zero Key stands for no names.
type hostKeys struct{ host, pods gen.NamesKey }

// keysOf returns the Keys of a host for a Scope. They depend on its namespace by what is exported to it alone.
func (t *Tables) keysOf(at source.At, host string) hostKeys {
	if at.Scope.Wide() {
		return t.keysAmong(at, slices.Collect(at.Snapshot.ServicesOfHost(host)))
	}
	return t.keysFor(at, imported(at, host), nil)
}

// imported returns the service that a host means for an explicit Scope, for the first of its parts that has it; nil if
// it sees none.
func imported(at source.At, host string) *value.Service {
	parts := at.Scope.Parts
	if parts == nil {
		parts = []*scope.Scope{at.Scope}
	}
	for _, part := range parts {
		svc := part.Service(at.Snapshot, host)
		if svc != nil && (at.Scope.Parts == nil || part.Listens(svc) != nil) {
			return svc
		}
	}
	return nil
}

// keysAmong returns the Keys for a default Scope of a host with some services, whose slice it reorders: those of the
// first Kubernetes Service that it sees or, without one, of all ServiceEntries, the oldest first.
func (t *Tables) keysAmong(at source.At, services []*value.Service) hostKeys {
	services = slices.DeleteFunc(services, func(s *value.Service) bool { return !at.Scope.Sees(s.Export) })
	if len(services) == 0 {
		return hostKeys{}
	}
	slices.SortStableFunc(services, func(a, b *value.Service) int {
		return cmp.Or(cmp.Compare(a.Registry, b.Registry), cmp.Compare(a.Created, b.Created),
			cmp.Compare(a.Namespace, b.Namespace))
	})
	var more *gen.NamesLink
	if services[0].Registry != value.RegistryKubernetes {
		for _, s := range slices.Backward(services[1:]) {
			more = t.links.Get(gen.NamesLink{Service: s, Next: more})
		}
	}
	return t.keysFor(at, services[0], more)
}

// keysFor returns the Keys of a service, with further ServiceEntries of the host.
func (t *Tables) keysFor(at source.At, svc *value.Service, more *gen.NamesLink) (k hostKeys) {
	if svc == nil {
		return k
	}
	traits := at.Scope.Traits
	k.host = gen.NamesKey{Service: svc, IPv4: traits.IPv4, IPv6: traits.IPv6, More: more}
	if !svc.ByMember() || len(svc.AutoAddresses) > 0 {
		return k
	}
	if k.host.Members = at.Snapshot.KnownProjection(svc.ServiceKey); k.host.Members == nil {
		return k
	}
	k.host.Network, k.host.Cluster = at.Scope.Network, at.Scope.ClusterID
	k.pods = k.host
	k.pods.Pods, k.pods.More = true, nil
	return k
}

// all yields the Keys of all hosts of which a Scope may see services.
func (t *Tables) all(at source.At) iter.Seq2[string, hostKeys] {
	return func(yield func(string, hostKeys) bool) {
		if !at.Scope.Wide() {
			for host := range at.Scope.Hosts(at.Snapshot) {
				if !yield(host, t.keysOf(at, host)) {
					return
				}
			}
			return
		}
		var same []*value.Service // those of host, which come one after the other
		host := ""
		for svc := range at.Snapshot.Services() {
			if svc.Host != host {
				if len(same) > 0 && !yield(host, t.keysAmong(at, same)) {
					return
				}
				host, same = svc.Host, same[:0]
			}
			same = append(same, svc)
		}
		if len(same) > 0 {
			yield(host, t.keysAmong(at, same))
		}
	}
}

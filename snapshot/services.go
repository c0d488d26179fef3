package snapshot

import (
	"fmt"

	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
)

// serviceIndex is all services, each under every key by which one is asked for.
type serviceIndex struct {
	byHost      chunked.Map[*value.Service] // host, namespace
	byNamespace chunked.Map[*value.Service] // namespace, host
	byPort      chunked.Map[*value.Service] // port, host, namespace
	byAddress   chunked.Map[*value.Service] // address, host, namespace
	byAlias     chunked.Map[*value.Service] // ExternalName, host, namespace
}

func portKey(port int) string { return fmt.Sprintf("%05d", port) }

// with returns x with the services of changes put in place of their predecessors.
func (x serviceIndex) with(changes Changes[value.ServiceKey, *value.Service]) serviceIndex {
	var host, ns, port, addr, alias editList[*value.Service]
	for k, c := range changes {
		if old := c.Old; old != nil {
			for _, p := range old.Ports {
				port.remove(key(portKey(p.Number), k.Host, k.Namespace))
			}
			for _, a := range old.Addresses {
				addr.remove(key(a, k.Host, k.Namespace))
			}
			alias.remove(key(old.ExternalName, k.Host, k.Namespace))
		}
		svc := c.New
		host.set(key(k.Host, k.Namespace), svc, svc == nil)
		ns.set(key(k.Namespace, k.Host), svc, svc == nil)
		if svc == nil {
			continue
		}
		for _, p := range svc.Ports {
			port.set(key(portKey(p.Number), k.Host, k.Namespace), svc, false)
		}
		for _, a := range svc.Addresses {
			addr.set(key(a, k.Host, k.Namespace), svc, false)
		}
		if svc.ExternalName != "" {
			alias.set(key(svc.ExternalName, k.Host, k.Namespace), svc, false)
		}
	}
	return serviceIndex{
		byHost: x.byHost.Apply(host), byNamespace: x.byNamespace.Apply(ns), byPort: x.byPort.Apply(port),
		byAddress: x.byAddress.Apply(addr), byAlias: x.byAlias.Apply(alias),
	}
}

// editList collects edits of one index.
type editList[V comparable] []chunked.Edit[V]

func (l *editList[V]) set(k string, v V, del bool) {
	*l = append(*l, chunked.Edit[V]{Key: k, Value: v, Delete: del})
}

func (l *editList[V]) remove(k string) { *l = append(*l, chunked.Edit[V]{Key: k, Delete: true}) }

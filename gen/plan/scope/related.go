package scope

import (
	"strings"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// relatedListeners returns the hosts, beside host itself, whose address listeners depend on the services,
// DestinationRules or VirtualServices of host: those that share an address with one of its services (whichever of them
// a client sees), be it of an endpoint of headless ones, those with TCP or TLS routes to it, wildcard hosts that cover
// it, and those that it is an alias of.
func relatedListeners(n *snapshot.Snapshot, host string) (hosts []string) {
	for svc := range n.ServicesOfHost(host) {
		hosts = append(hosts, sharers(n, svc)...)
		if svc.ExternalName != "" {
			hosts = append(hosts, svc.ExternalName)
		}
		for _, a := range svc.Addresses {
			for o := range n.ServicesAt(a) {
				hosts = append(hosts, o.Host)
			}
		}
	}
	for vs := range n.VirtualServicesTo(host) {
		if !vs.HasStreams() {
			continue
		}
		for _, h := range vs.Hosts {
			hosts = append(hosts, covered(n, h)...)
		}
	}
	for p := range snapshot.Patterns(host) {
		if p != host && hasService(n, p) {
			hosts = append(hosts, p)
		}
	}
	return hosts
}

// covered returns the hosts of services to which a host of a VirtualService applies.
func covered(n *snapshot.Snapshot, host string) (hosts []string) {
	if !strings.HasPrefix(host, "*") {
		return []string{host}
	}
	for svc := range n.ServicesUnder(host) {
		hosts = append(hosts, svc.Host)
	}
	return hosts
}

// sharers returns the hosts of headless services that have an endpoint of svc at one of its ports.
func sharers(n *snapshot.Snapshot, svc *value.Service) (hosts []string) {
	if !svc.ByMember() {
		return nil
	}
	for _, p := range svc.Ports {
		if p.Protocol.IsHTTP() {
			continue
		}
		for address := range n.Members(svc, p) {
			for o := range n.WithMember(p.Number, address) {
				if o.ServiceKey != svc.ServiceKey {
					hosts = append(hosts, o.Host)
				}
			}
		}
	}
	return hosts
}

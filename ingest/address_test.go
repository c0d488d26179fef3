package ingest

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/pilotd/pilotd/snapshot/value"
)

// TestOneAddressHasOneText: an address that objects of different kinds write in different ways is one address in all
// values.
func TestOneAddressHasOneText(t *testing.T) {
	k := newKeeper()
	s := NewStore(k, quiet(t), "kube")
	s.Synced("kube")
	s.Apply(decode(t, "kube", `
kind: Service
metadata: {name: web, namespace: a}
spec: {clusterIP: "FD00:0::0A", clusterIPs: ["fd00::a", "::ffff:10.0.0.1"], externalIPs: ["fd00:0:0::b"], ports: [{name: http, port: 80}]}
---
kind: ServiceEntry
metadata: {name: e, namespace: a}
spec: {hosts: [x.com], addresses: ["fd00:0:0:0::c", "FD00::C/128", "10.1.2.3/8"], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: "fd00:0::d"}]}
---
kind: WorkloadEntry
metadata: {name: w, namespace: a}
spec: {address: "fd00:0::e"}
---
kind: Pod
metadata: {name: p, namespace: a}
status: {podIP: "fd00:0::f", podIPs: [{ip: "fd00::f"}, {ip: "::FFFF:10.0.0.2"}]}
---
kind: EndpointSlice
metadata: {name: web-1, namespace: a, labels: {kubernetes.io/service-name: web}}
addressType: IPv6
ports: [{name: http, port: 80}]
endpoints: [{addresses: ["fd00:0::f"]}]
---
kind: VirtualService
metadata: {name: v, namespace: a}
spec: {hosts: ["fd00:0::a"], tcp: [{match: [{destinationSubnets: ["10.1.2.3/8", "fd00:0::1"]}], route: [{destination: {host: "FD00:0::A"}}]}]}
---
kind: Gateway
metadata: {name: g, namespace: a}
spec: {servers: [{port: {number: 80, name: http, protocol: HTTP}, bind: "fd00:0::1", hosts: ["*"]}]}
---
kind: Sidecar
metadata: {name: s, namespace: a}
spec: {ingress: [{port: {number: 80, name: http, protocol: HTTP}, bind: "0:0::0", defaultEndpoint: "127.0.0.1:80"}], egress: [{port: {number: 81, name: http, protocol: HTTP}, bind: "fd00:0::2", hosts: ["./*"]}]}
`))
	if r := s.Rejections(); len(r) > 0 {
		t.Fatalf("refused: %v", r)
	}
	b := &k.whole
	check := func(what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	web := value.ServiceKey{Host: "web.a.svc.cluster.local", Namespace: "a"}
	x := value.ServiceKey{Host: "x.com", Namespace: "a"}
	key := func(kind value.Kind, name string) value.ObjectKey {
		return value.ObjectKey{Kind: kind, Namespace: "a", Name: name}
	}
	check("Service", b.Services[web].New.Addresses, "fd00::a", "10.0.0.1")
	check("external IPs", b.Services[web].New.ExternalIPs, "fd00::b")
	check("ServiceEntry", b.Services[x].New.Addresses, "fd00::c", "10.0.0.0/8")
	check("endpoint of a ServiceEntry", b.Endpoints[x].New.Endpoints[0].Addresses, "fd00::d")
	check("endpoint of a slice", b.Endpoints[web].New.Endpoints[0].Addresses, "fd00::f")
	if b.Workloads["fd00::e"].New == nil || b.Workloads["fd00::f"].New == nil || b.Workloads["10.0.0.2"].New == nil {
		t.Errorf("workloads: %v", b.Workloads)
	}
	v := b.Objects[key(value.KindVirtualService, "v")].New.(*value.VirtualService)
	check("VirtualService", append(v.Hosts, v.TCP[0].Destinations[0].Host), "fd00::a", "fd00::a")
	check("subnets", v.TCP[0].Matches[0].Subnets, "10.0.0.0/8", "fd00::1")
	check("Gateway", []string{b.Objects[key(value.KindGateway, "g")].New.(*value.Gateway).Servers[0].Bind}, "fd00::1")
	sidecar := b.Objects[key(value.KindSidecar, "s")].New.(*value.Sidecar)
	check("Sidecar", []string{sidecar.Ingress[0].Bind, sidecar.Egress[0].Bind}, "::", "fd00::2")
}

// FuzzAddressOf: an address and its text are one to one, and other texts stay as they are.
func FuzzAddressOf(f *testing.F) {
	for _, s := range []string{"10.0.0.1", "FD00:0::1", "::ffff:1.2.3.4", "fe80::1%eth0", "web.shop", "10.0.0.1/8",
		"::ffff:10.0.0.0/104"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := netip.ParseAddr(s)
		got := addressOf(s)
		if err != nil && got != s {
			t.Fatalf("%q became %q", s, got)
		}
		if err == nil {
			if again, err := netip.ParseAddr(got); err != nil || again != a.Unmap() || addressOf(got) != got {
				t.Fatalf("%q became %q", s, got)
			}
		}
		if once := subnetOf(s); subnetOf(once) != once {
			t.Fatalf("%q is %q, and that is %q", s, once, subnetOf(once))
		}
	})
}

package gen_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unique"

	"google.golang.org/protobuf/proto"

	"github.com/pilotd/pilotd/gen"
	ndsv1 "github.com/pilotd/pilotd/proto/nds/v1"
	"github.com/pilotd/pilotd/snapshot/value"
)

// named returns a service of the namespace shop.
func named(host string, registry value.Registry, addresses ...string) *value.Service {
	return &value.Service{ServiceKey: value.ServiceKey{Host: host, Namespace: "shop"}, Registry: registry,
		Name: strings.Split(host, ".")[0], Addresses: addresses,
		Ports: []*value.Port{{Name: "tcp", Number: 80}, {Name: "admin", Number: 81}}}
}

// headless returns a service without an address.
func headless(host string) *value.Service {
	svc := named(host, value.RegistryKubernetes)
	svc.Headless, svc.Resolution = true, value.Passthrough
	return svc
}

// podAt returns an endpoint at the port "tcp" of a pod of the subdomain db.
func podAt(address, pod string, edit func(*value.Endpoint, *value.Identity)) *value.Endpoint {
	e, id := &value.Endpoint{Addresses: []string{address}, HostName: pod, Ports: []value.EndpointPort{{Name: "tcp"}}},
		value.Identity{Cluster: "here"}
	if pod != "" {
		e.SubDomain = "db"
	}
	if edit != nil {
		edit(e, &id)
	}
	e.Identity = unique.Make(id)
	return e
}

// What a name resolves to is what istiod says of it.
func TestNames(t *testing.T) {
	const kube, external = value.RegistryKubernetes, value.RegistryExternal
	allocated := named("ext.example.com", external)
	allocated.AutoAddresses = []string{"240.240.0.1", "2001:2::1"}
	published := headless("db.shop.svc.cluster.local")
	published.PublishNotReady = true
	notReady := func(e *value.Endpoint, _ *value.Identity) { e.Health = value.Unhealthy }
	members := &value.Projection{Inline: []*value.Endpoint{
		podAt("10.0.0.1", "db-0", nil), podAt("fd00::1", "db-0", nil), // a pod of two families
		podAt("10.0.0.2", "db-1", nil), podAt("10.0.0.3", "", nil), podAt("10.0.0.4", "db-2", notReady),
		podAt("10.0.0.5", "db-3", func(e *value.Endpoint, _ *value.Identity) { e.Health = value.Draining }),
		podAt("10.0.0.6", "db-4", func(e *value.Endpoint, _ *value.Identity) { e.Ports[0].Name = "admin" }),
		podAt("10.0.0.7", "db-5", func(_ *value.Endpoint, id *value.Identity) { id.Network = "far" }),
		podAt("10.0.0.8", "db-1", func(_ *value.Endpoint, id *value.Identity) { id.Cluster = "there" }),
		podAt("10.0.0.9", "db-6", func(_ *value.Endpoint, id *value.Identity) { id.Cluster = "there" }),
		podAt("name.example.com", "db-7", nil),
	}}
	waiting := &value.Projection{Inline: []*value.Endpoint{podAt("10.0.0.4", "db-2", notReady)}}
	for what, c := range map[string]struct {
		key  gen.NamesKey
		want string
	}{
		"service": {gen.NamesKey{Service: named("web.shop.svc.cluster.local", kube, "10.96.0.1"), IPv4: true},
			"web.shop.svc.cluster.local 10.96.0.1 Kubernetes web shop"},
		"service of two families": {gen.NamesKey{Service: named("web.shop.svc.cluster.local", kube, "10.96.0.1",
			"fd00::9"), IPv4: true, IPv6: true}, "web.shop.svc.cluster.local 10.96.0.1,fd00::9 Kubernetes web shop"},
		"service of two families, IPv6 proxy": {gen.NamesKey{Service: named("web.shop.svc.cluster.local", kube,
			"10.96.0.1", "fd00::9"), IPv6: true}, "web.shop.svc.cluster.local fd00::9 Kubernetes web shop"},
		"service of the other family": {gen.NamesKey{Service: named("web.shop.svc.cluster.local", kube, "fd00::9"),
			IPv4: true}, "web.shop.svc.cluster.local fd00::9 Kubernetes web shop"},
		"service of several clusters": {gen.NamesKey{Service: named("web.shop.svc.clusterset.local", kube, "10.96.0.1"),
			IPv4: true}, "web.shop.svc.clusterset.local 10.96.0.1 Kubernetes"},
		"ExternalName": {gen.NamesKey{Service: named("alias.shop.svc.cluster.local", kube), IPv4: true}, ""},
		"ServiceEntry": {gen.NamesKey{Service: named("ext.example.com", external, "240.1.1.1", "240.2.0.0/16"),
			IPv4: true, More: &gen.NamesLink{Service: named("ext.example.com", external, "240.1.1.2", "240.1.1.1")}},
			"ext.example.com 240.1.1.1,240.1.1.2 External"},
		"only ranges":         {gen.NamesKey{Service: named("ext.example.com", external, "240.2.0.0/16"), IPv4: true}, ""},
		"wildcard":            {gen.NamesKey{Service: named("*.example.com", external, "240.1.2.1"), IPv4: true}, "*.example.com 240.1.2.1 External"},
		"everything":          {gen.NamesKey{Service: named("*", external, "240.1.2.1"), IPv4: true}, ""},
		"allocated addresses": {gen.NamesKey{Service: allocated, IPv4: true}, "ext.example.com 240.240.0.1 External"},
		"headless": {gen.NamesKey{Service: headless("db.shop.svc.cluster.local"), Members: members, Cluster: "here",
			Network: "near"}, "db.shop.svc.cluster.local 10.0.0.1,fd00::1,10.0.0.2,10.0.0.3,10.0.0.8,10.0.0.9 Kubernetes db shop"},
		"pods": {gen.NamesKey{Service: headless("db.shop.svc.cluster.local"), Members: members, Cluster: "here",
			Network: "near", Pods: true}, "db-0.db.shop.svc.cluster.local 10.0.0.1,fd00::1 Kubernetes db-0.db shop; " +
			"db-1.db.shop.svc.cluster.local 10.0.0.2 Kubernetes db-1.db shop; " +
			"db-6.db.shop.svc.cluster.local 10.0.0.9 Kubernetes db-6.db shop"},
		"headless, nobody ready": {gen.NamesKey{Service: headless("db.shop.svc.cluster.local"), Members: waiting}, ""},
		"headless, published": {gen.NamesKey{Service: published, Members: waiting},
			"db.shop.svc.cluster.local 10.0.0.4 Kubernetes db shop"},
	} {
		if got := describeNames(gen.Names(c.key)); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
		b, _ := gen.EncodeNames(c.key)
		m := &ndsv1.NameTable{}
		if err := proto.Unmarshal(b, m); err != nil || describeNames(m.Table) != c.want {
			t.Errorf("%s is encoded as %v, %v", what, m, err)
		}
		for range 20 {
			if again, _ := gen.EncodeNames(c.key); !slices.Equal(b, again) {
				t.Errorf("%s: one content, two encodings", what)
			}
		}
	}
}

func describeNames(table map[string]*ndsv1.NameTable_NameInfo) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(table)) {
		i := table[name]
		out = append(out, strings.TrimSpace(fmt.Sprintln(name, strings.Join(i.Ips, ","), i.Registry, i.Shortname,
			i.Namespace)))
	}
	return strings.Join(out, "; ")
}

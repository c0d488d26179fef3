package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unique"

	"google.golang.org/protobuf/types/known/durationpb"
	networking "istio.io/api/networking/v1alpha3"
	typev1beta1 "istio.io/api/type/v1beta1"
	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/envoytext"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot/value"
)

func randomService(t *rapid.T, k value.ServiceKey, meta value.Meta) *value.Service {
	s := &value.Service{ServiceKey: k, Name: strings.Split(k.Host, ".")[0], Created: meta.Created,
		Export: exportTo(t, k.Namespace), Object: value.ObjectKey{Kind: value.KindService, Namespace: k.Namespace,
			Name: k.Host}}
	if strings.HasSuffix(k.Host, "example.com") {
		s.Registry, s.External = value.RegistryExternal, true
		s.Resolution = rapid.SampledFrom([]value.Resolution{value.ClientSideLB, value.DNSLB, value.Passthrough}).Draw(t,
			"resolution")
	} else {
		s.Selector = value.Labels{"app": pick(t, "selects", "one", "two")}
	}
	if rapid.Bool().Draw(t, "vip") {
		s.Addresses = []string{pick(t, "vip", "10.96.0.1", "10.96.0.2", "10.96.0.3")}
	}
	if len(s.Addresses) == 0 && s.Registry == value.RegistryKubernetes {
		s.Headless, s.Resolution = true, value.Passthrough
	} else if s.Registry == value.RegistryExternal && rapid.Bool().Draw(t, "range") {
		s.Addresses = append(s.Addresses, pick(t, "range", "10.96.0.0/24", "10.97.0.0/16"))
	} else if s.Registry == value.RegistryExternal && rapid.Bool().Draw(t, "allocated") {
		s.AutoAddresses = []string{"240.240.0.1", "2001:2::1"}
	}
	for _, n := range rapid.SliceOfNDistinct(rapid.SampledFrom([]int{80, 443, 8080, 9000}), 1, 3, rapid.ID[int]).Draw(t,
		"ports") {
		p := rapid.SampledFrom([]value.Protocol{value.HTTP, value.HTTP, value.TCP, value.Auto, value.TLS, value.GRPC,
			value.Mongo}).Draw(t, "protocol")
		s.Ports = append(s.Ports, &value.Port{Name: fmt.Sprint("p", n), Number: n, Protocol: p, TargetPort: n})
	}
	return s
}

func randomVirtualService(t *rapid.T, meta value.Meta) *value.VirtualService {
	route := &networking.HTTPRoute{
		Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: host(t)}}}}
	if rapid.Bool().Draw(t, "match") {
		route.Match = []*networking.HTTPMatchRequest{{
			Uri: &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: pick(t, "prefix", "/a", "/b")}}}}
	}
	size := 0
	if rapid.IntRange(0, 3).Draw(t, "regex") == 0 {
		route.Match, size = matchRegex(pick(t, "expression", "/[0-9a-f-]{36}", "/a+"))
	}
	if rapid.IntRange(0, 3).Draw(t, "source") == 0 {
		route.Match = []*networking.HTTPMatchRequest{{SourceLabels: map[string]string{"app": pick(t, "source", "one",
			"two")}}}
	}
	if rapid.IntRange(0, 3).Draw(t, "from") == 0 {
		route.Match = []*networking.HTTPMatchRequest{{SourceNamespace: pick(t, "source namespace", "a", "b", "c")}}
	}
	if rapid.Bool().Draw(t, "bytes") {
		return randomStreams(t, meta)
	}
	return &value.VirtualService{Meta: meta, Export: exportTo(t, meta.Namespace),
		Routing: istio.Routing(&networking.VirtualService{
			Hosts:    rapid.SliceOfNDistinct(rapid.Custom(hostOrPattern), 1, 3, rapid.ID[string]).Draw(t, "hosts"),
			Gateways: []string{pick(t, "binds", "mesh", "mesh", "a/x")},
			Http:     []*networking.HTTPRoute{route},
		}), RegexSize: size}
}

// matchRegex returns a match of a path by an expression, and the size of its program.
func matchRegex(expression string) ([]*networking.HTTPMatchRequest, int) {
	size, err := new(envoytext.Meter).Size(expression)
	if err != nil {
		panic(err)
	}
	return []*networking.HTTPMatchRequest{{
		Uri: &networking.StringMatch{MatchType: &networking.StringMatch_Regex{Regex: expression}}}}, size
}

// randomStreams returns a VirtualService of TCP and TLS routes.
func randomStreams(t *rapid.T, meta value.Meta) *value.VirtualService {
	to := func() []*networking.RouteDestination {
		return []*networking.RouteDestination{{Destination: &networking.Destination{Host: host(t)}}}
	}
	m := &networking.L4MatchAttributes{Port: uint32(rapid.SampledFrom([]int{0, 443, 9000}).Draw(t, "l4port"))}
	if rapid.IntRange(0, 3).Draw(t, "from") == 0 {
		m.SourceNamespace = pick(t, "source namespace", "a", "c")
	}
	if rapid.Bool().Draw(t, "subnet") {
		m.DestinationSubnets = []string{pick(t, "subnet", "10.96.0.0/24", "10.0.0.0/8")}
	}
	sni := &networking.TLSMatchAttributes{SniHosts: []string{pick(t, "sni", "x.example.com", "*")}}
	return &value.VirtualService{Meta: meta, Export: exportTo(t, meta.Namespace),
		Routing: istio.Routing(&networking.VirtualService{
			Hosts:    rapid.SliceOfNDistinct(rapid.Custom(hostOrPattern), 1, 3, rapid.ID[string]).Draw(t, "hosts"),
			Gateways: []string{"mesh"},
			Tcp:      []*networking.TCPRoute{{Match: []*networking.L4MatchAttributes{m}, Route: to()}},
			Tls:      []*networking.TLSRoute{{Match: []*networking.TLSMatchAttributes{sni}, Route: to()}},
		})}
}

func randomRule(t *rapid.T, meta value.Meta) *value.DestinationRule {
	export, spec := exportTo(t, meta.Namespace), &networking.DestinationRule{Host: hostOrPattern(t)}
	if rapid.Bool().Draw(t, "subset") {
		spec.Subsets = []*networking.Subset{{Name: pick(t, "subset", "v1", "v2"),
			Labels: map[string]string{"version": "v1"}}}
	}
	if rapid.Bool().Draw(t, "policy") {
		idle := durationpb.New(time.Duration(rapid.IntRange(0, 2).Draw(t, "idle")) * time.Second)
		spec.TrafficPolicy = &networking.TrafficPolicy{
			ConnectionPool: &networking.ConnectionPoolSettings{
				Tcp: &networking.ConnectionPoolSettings_TCPSettings{IdleTimeout: idle}},
			OutlierDetection: &networking.OutlierDetection{MinHealthPercent: int32(rapid.IntRange(0, 2).Draw(t,
				"health"))},
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "workload") == 0 {
		spec.WorkloadSelector = selector(t)
	}
	return &value.DestinationRule{Meta: meta, Export: export, DestinationPolicy: istio.Policy(spec),
		From: []value.ObjectKey{{Kind: value.KindDestinationRule, Namespace: meta.Namespace, Name: meta.Name}}}
}

func randomGateway(t *rapid.T, meta value.Meta) *value.Gateway {
	return &value.Gateway{Meta: meta, GatewaySettings: value.GatewaySettings{
		Workload: value.Labels{"app": pick(t, "app", "one", "two")},
		Servers: []*value.Server{{
			Port: value.ListenerPort{Number: rapid.SampledFrom([]int{80, 8080}).Draw(t, "port"), Name: "http",
				Protocol: value.HTTP}, Hosts: []value.ServerHost{{Namespace: "*", Host: hostOrPattern(t)}},
		}}}}
}

func randomSidecar(t *rapid.T, meta value.Meta) *value.Sidecar {
	imports := rapid.SliceOfN(rapid.Custom(egressHost), 1, 4).Draw(t, "imports")
	spec := &networking.Sidecar{}
	for _, number := range rapid.SliceOfNDistinct(rapid.SampledFrom([]uint32{80, 443, 9000}), 0, 2,
		rapid.ID[uint32]).Draw(t, "egress ports") {
		spec.Egress = append(spec.Egress, &networking.IstioEgressListener{
			Hosts: rapid.SliceOfN(rapid.Custom(egressHost), 1, 2).Draw(t, "listener's imports"),
			Bind:  pick(t, "bind", "", "", "127.0.0.1"),
			Port: &networking.SidecarPort{Number: number, Protocol: pick(t, "egress protocol", "HTTP", "TCP",
				"TLS"), Name: "out"},
			CaptureMode: rapid.SampledFrom([]networking.CaptureMode{networking.CaptureMode_DEFAULT,
				networking.CaptureMode_NONE}).Draw(t, "egress capture"),
		})
	}
	spec.Egress = append(spec.Egress, &networking.IstioEgressListener{Hosts: imports})
	if rapid.Bool().Draw(t, "selective") {
		spec.WorkloadSelector = &networking.WorkloadSelector{Labels: map[string]string{"app": pick(t, "app", "one",
			"two")}}
	}
	for _, number := range rapid.SliceOfNDistinct(rapid.SampledFrom([]uint32{80, 8080, 9000}), 0, 2,
		rapid.ID[uint32]).Draw(t, "ingress") {
		spec.Ingress = append(spec.Ingress, &networking.IstioIngressListener{
			Port: &networking.SidecarPort{Number: number, Protocol: pick(t, "ingress protocol", "HTTP",
				"TCP"), Name: "in"},
			DefaultEndpoint: pick(t, "default endpoint", "", "127.0.0.1:1", "0.0.0.0:2", "unix:///app"),
			CaptureMode: rapid.SampledFrom([]networking.CaptureMode{networking.CaptureMode_DEFAULT,
				networking.CaptureMode_NONE}).Draw(t, "capture"),
		})
	}
	return &value.Sidecar{Meta: meta, SidecarSettings: istio.Sidecar(spec)}
}

// egressHost returns one line of a Sidecar: an import of a host or a pattern from a namespace, the client's own, or
// all; now and then an exclusion.
func egressHost(t *rapid.T) string {
	ns := pick(t, "imported namespace", "*", ".", "a", "b", "root")
	if rapid.IntRange(0, 5).Draw(t, "excluded") == 0 {
		ns = pick(t, "excluded namespace", "~", "~*", "~a", "~b")
	}
	return ns + "/" + hostOrPattern(t)
}

func randomEndpoints(t *rapid.T, ns string) (out []*value.Endpoint) {
	id := unique.Make(value.Identity{Namespace: ns, Workload: "w", Network: pick(t, "network", "", "", "far"),
		Cluster: pick(t, "cluster", "Kubernetes", "Kubernetes", "other"), ServiceAccount: "cluster.local/ns/" + ns + "/sa/" +
			pick(t, "account", "x", "y"), TLSMode: "istio"})
	for i := range rapid.IntRange(0, 3).Draw(t, "endpoints") {
		out = append(out, &value.Endpoint{Addresses: []string{fmt.Sprint("10.0.0.", i+1)}, Weight: 1, Identity: id,
			HostName: fmt.Sprint("pod-", i), SubDomain: pick(t, "subdomain", "", "one"),
			Health: rapid.SampledFrom([]value.Health{value.Healthy, value.Healthy, value.Unhealthy}).Draw(t, "health"),
			Labels: value.Labels{"version": "v1", "app": pick(t, "endpoint's app", "one", "two")},
			Ports: []value.EndpointPort{{Name: "p80",
				Port: uint32(rapid.SampledFrom([]int{80, 8080}).Draw(t, "endpoint port"))},
				{Name: "p9000", Port: 9000}}})
	}
	return out
}

func projection(eps []*value.Endpoint) *value.Projection {
	p := &value.Projection{Any: len(eps) > 0, Inline: eps}
	for _, e := range eps {
		p.ServiceAccounts = append(p.ServiceAccounts, e.Identity.Value().ServiceAccount)
	}
	p.ServiceAccounts = slices.Compact(p.ServiceAccounts)
	return p
}

func randomPeers(t *rapid.T, meta value.Meta) *value.PeerAuthentication {
	mode := func() *value.MTLSMode {
		m := rapid.SampledFrom([]value.MTLSMode{value.Permissive, value.Strict, value.Disabled, 9}).Draw(t, "mode")
		if m > value.Disabled {
			return nil
		}
		return &m
	}
	out := &value.PeerAuthentication{Meta: meta, Mode: mode()}
	if rapid.Bool().Draw(t, "selects") {
		out.Labels = value.Labels{"app": pick(t, "app", "one", "two")}
		out.Ports = map[uint32]*value.MTLSMode{}
		for _, port := range rapid.SliceOfNDistinct(rapid.SampledFrom([]uint32{80, 7000, 8080}), 0, 2,
			rapid.ID[uint32]).Draw(t, "ports") {
			out.Ports[port] = mode()
		}
	}
	return out
}

func randomAuthorization(t *rapid.T, meta value.Meta) *value.AuthorizationPolicy {
	out := &value.AuthorizationPolicy{Meta: meta, DryRun: rapid.Bool().Draw(t, "dry run"),
		Action: value.AuthorizationAction(rapid.IntRange(0, 3).Draw(t, "action")),
		Rules: []value.AuthorizationRule{{Sources: [][]value.AccessCondition{{}}, Operations: [][]value.AccessCondition{{{
			Attribute: value.DestinationPort, Values: []string{pick(t, "port", "80", "7000")}}}}}}}
	out.Provider = pick(t, "provider", "web", "grpc", "none")
	switch pick(t, "target", "all", "workload", "gateway", "elsewhere") {
	case "workload":
		out.Labels = value.Labels{"app": pick(t, "app", "one", "two")}
	case "gateway":
		out.Gateways = []string{"x"}
	case "elsewhere":
		out.Elsewhere = true
	}
	return out
}

func selector(t *rapid.T) *typev1beta1.WorkloadSelector {
	return &typev1beta1.WorkloadSelector{MatchLabels: map[string]string{"app": pick(t, "app", "one", "two")}}
}

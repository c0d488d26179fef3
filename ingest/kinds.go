package ingest

import (
	"slices"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Kinds returns the descriptions of all kinds, the served ones first. Callers must not write them.
func Kinds() []Kind { return slices.Concat(servedKinds(), asideKinds(), unservedKinds()) }

func servedKinds() []Kind {
	return []Kind{
		namespaceKind(), nodeKind(), podKind(), serviceKind(), sliceKind(), meshKind(), serviceEntryKind(),
		workloadEntryKind(), virtualServiceKind(), destinationRuleKind(), gatewayKind(), sidecarKind(),
		peerAuthenticationKind(), authorizationPolicyKind(), requestAuthenticationKind(),
	}
}

// unservedKinds returns the kinds of Istio's API and of the Gateway API that pilotd does not serve. pilotd looks for
// objects of these kinds only to report that they have no effect.
func unservedKinds() (out []Kind) {
	const noGateway = "pilotd does not read the Gateway API yet: it brings about no listener and no route"
	istio := []string{"v1", "v1beta1", "v1alpha3", "v1alpha1"}
	gateway := []string{"v1", "v1beta1", "v1alpha3", "v1alpha2"}
	for _, k := range []struct {
		versions                    []string
		group, name, plural, reason string
		security                    bool
	}{
		{istio, "networking.istio.io", "EnvoyFilter", "envoyfilters", "nothing is patched by it", false},
		{[]string{"v1beta1"}, "networking.istio.io", proxyConfigName, "proxyconfigs",
			"in a directory it has no effect; an API server's are served, at injection", false},
		{istio, "networking.istio.io", "WorkloadGroup", "workloadgroups",
			"workloads do not register themselves; WorkloadEntries are served", false},
		{istio, "extensions.istio.io", "WasmPlugin", "wasmplugins", "the plugin is not run", true},
		{istio, "extensions.istio.io", "TrafficExtension", "trafficextensions", "the extension is not run", true},
		{istio, "telemetry.istio.io", "Telemetry", "telemetries", "telemetry is what the proxies do by themselves",
			false},
		{gateway, gatewayGroup, "Gateway", "gateways", noGateway, false},
		{gateway, gatewayGroup, "HTTPRoute", "httproutes", noGateway, false},
		{gateway, gatewayGroup, "GRPCRoute", "grpcroutes", noGateway, false},
		{gateway, gatewayGroup, "TLSRoute", "tlsroutes", noGateway, false},
		{gateway, gatewayGroup, "TCPRoute", "tcproutes", noGateway, false},
		{gateway, gatewayGroup, "UDPRoute", "udproutes", noGateway, false},
		{gateway, gatewayGroup, "ListenerSet", "listenersets", noGateway, false},
		{gateway, gatewayGroup, "BackendTLSPolicy", "backendtlspolicies", noGateway, true},
	} {
		out = append(out, Kind{Name: value.KindOf(k.group, k.name), Plural: k.plural, Versions: k.versions,
			InNamespaces: true, NotServed: k.reason, Security: k.security, ForInjection: k.name == proxyConfigName,
			Loss: "objects of this kind, which is not served, are not reported"})
	}
	return out
}

// proxyConfigName is the kind whose objects injection merges over the mesh's defaultConfig.
const proxyConfigName = "ProxyConfig"

const gatewayGroup = "gateway.networking.k8s.io"

// KindTable finds the description of a kind. Immutable.
type KindTable map[value.Kind]*Kind

// NewKindTable returns a table of all kinds.
func NewKindTable() KindTable {
	table, all := KindTable{}, Kinds()
	for i := range all {
		table[all[i].Name] = &all[i]
	}
	return table
}

// InAPI returns the kind with this API group and kind field; nil if pilotd does not know it.
func (t KindTable) InAPI(group, name string) *Kind {
	if k := t[value.KindOf(group, name)]; k != nil {
		return k
	}
	for _, k := range t {
		if k.Name.Group() == group && k.APIName() == name {
			return k
		}
	}
	return nil
}

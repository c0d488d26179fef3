package support

// Kind is a kind of object that pilotd does not serve. Its objects are looked for all the same, by name alone, so that
// nobody waits in vain for what they ask.
type Kind struct {
	// Group and Name are those of the API; Plural is the resource's name in URLs.
	Group, Name, Plural string
	// Versions are those that the kind may be served in, the one to prefer first.
	Versions []string
	// Reason says what happens instead.
	Reason string
	// Security tells that what happens instead may let traffic through that the user means to stop.
	Security bool
}

// The API groups of the kinds that are not served.
const (
	securityGroup  = "security.istio.io"
	networkGroup   = "networking.istio.io"
	extensionGroup = "extensions.istio.io"
	telemetryGroup = "telemetry.istio.io"
	gatewayGroup   = "gateway.networking.k8s.io"
)

// Kinds are the kinds that are not served, of Istio's API and of the Gateway API.
func Kinds() []Kind {
	istio := []string{"v1", "v1beta1", "v1alpha3", "v1alpha1"}
	gateway := []string{"v1", "v1beta1", "v1alpha3", "v1alpha2"}
	const noGateway = "pilotd does not read the Gateway API yet: it brings about no listener and no route"
	kinds := []Kind{
		{Group: securityGroup, Name: "PeerAuthentication", Plural: "peerauthentications", Security: true,
			Reason: "ports accept plain text and mutual TLS, whatever it says"},
		{Group: securityGroup, Name: "RequestAuthentication", Plural: "requestauthentications", Security: true,
			Reason: "tokens are not checked"},
		{Group: securityGroup, Name: "AuthorizationPolicy", Plural: "authorizationpolicies", Security: true,
			Reason: "nothing is denied by it"},
		{Group: networkGroup, Name: "EnvoyFilter", Plural: "envoyfilters", Reason: "nothing is patched by it"},
		{Group: networkGroup, Name: "ProxyConfig", Plural: "proxyconfigs",
			Reason: "the mesh's defaultConfig holds for all proxies"},
		{Group: networkGroup, Name: "WorkloadGroup", Plural: "workloadgroups",
			Reason: "workloads do not register themselves; WorkloadEntries are served"},
		{Group: extensionGroup, Name: "WasmPlugin", Plural: "wasmplugins", Security: true,
			Reason: "the plugin is not run"},
		{Group: extensionGroup, Name: "TrafficExtension", Plural: "trafficextensions", Security: true,
			Reason: "the extension is not run"},
		{Group: telemetryGroup, Name: "Telemetry", Plural: "telemetries",
			Reason: "telemetry is what the proxies do by themselves"},
	}
	for i := range kinds {
		kinds[i].Versions = istio
	}
	for _, k := range [][2]string{
		{"Gateway", "gateways"}, {"HTTPRoute", "httproutes"}, {"GRPCRoute", "grpcroutes"}, {"TLSRoute", "tlsroutes"},
		{"TCPRoute", "tcproutes"}, {"UDPRoute", "udproutes"}, {"ListenerSet", "listenersets"},
	} {
		kinds = append(kinds, Kind{Group: gatewayGroup, Name: k[0], Plural: k[1], Versions: gateway, Reason: noGateway})
	}
	kinds = append(kinds, Kind{Group: gatewayGroup, Name: "BackendTLSPolicy", Plural: "backendtlspolicies",
		Versions: gateway, Security: true, Reason: noGateway})
	return kinds
}

// Object is the kind's name in keys and on pages: "EnvoyFilter", and "Gateway.gateway.networking.k8s.io" for the
// Gateway API, of whose names some are Istio's too.
func (k Kind) Object() string {
	if k.Group == gatewayGroup {
		return k.Name + "." + k.Group
	}
	return k.Name
}

// CRD is the name of the kind's custom resource definition.
func (k Kind) CRD() string { return k.Plural + "." + k.Group }

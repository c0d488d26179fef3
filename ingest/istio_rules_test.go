package ingest

import (
	"testing"

	"github.com/pilotd/pilotd/snapshot/value"
)

// TestIstiosVerdicts: what the validation of istiod's webhook refuses is refused, and what it only warns of is in
// force.
func TestIstiosVerdicts(t *testing.T) {
	const to = `route: [{destination: {host: web}}]`
	judged(t, "VirtualService", "spec: {…}", [][2]string{
		{`hosts: ["*.foo.com", a.foo.com], http: [{` + to + `}]`, "spec.hosts[1]"},
		{`hosts: [a.foo.com, "*.foo.com"], http: [{` + to + `}]`, "spec.hosts[1]"},
		{`hosts: ["*.foo.com", "*.com"], http: [{` + to + `}]`, "spec.hosts[1]"},
		{`hosts: ["*.foo.com", foo.com], http: [{` + to + `}]`, ""},
		{`hosts: [web, web], http: [{` + to + `}]`, "spec.hosts[1]"},
		{`hosts: ["*"], http: [{` + to + `}]`, "spec.hosts[0]"},
		{`hosts: ["*"], gateways: [g, mesh], http: [{` + to + `}]`, "spec.hosts[0]"},
		{`hosts: ["*"], gateways: [g], http: [{` + to + `}]`, ""},
		{`hosts: [web], http: [{match: [{headers: {"@request.auth.claims.x": {exact: a}}}], ` + to + `}]`,
			"spec.http[0].match[0].headers.@request.auth.claims.x"},
		{`hosts: [web], gateways: [g], http: [{match: [{headers: {"@request.auth.claims.x": {exact: a}}}], ` + to +
			`}]`, ""},
		{`hosts: [web], http: [{corsPolicy: {allowMethods: [FETCH]}, ` + to + `}]`,
			"spec.http[0].corsPolicy.allowMethods[0]"},
		{`hosts: [web], http: [{corsPolicy: {allowOrigins: [{exact: ""}]}, ` + to + `}]`,
			"spec.http[0].corsPolicy.allowOrigins[0]"},
		{`hosts: [web], http: [{corsPolicy: {maxAge: 1.5s}, ` + to + `}]`, "spec.http[0].corsPolicy.maxAge"},
		{`hosts: [web], http: [{fault: {}, ` + to + `}]`, "spec.http[0].fault"},
		{`hosts: [web], http: [{fault: {abort: {percentage: {value: 1}}}, ` + to + `}]`, ""},
		{`hosts: [web], http: [{fault: {abort: {grpcStatus: NOTHING}}, ` + to + `}]`,
			"spec.http[0].fault.abort.grpcStatus"},
		{`hosts: [web], http: [{fault: {abort: {grpcStatus: NOT_FOUND}}, ` + to + `}]`, ""},
		{`hosts: [web], http: [{route: [{destination: {host: web, subset: a.b}}]}]`,
			"spec.http[0].route[0].destination.subset"},
		{`hosts: [web], exportTo: ["*", b], http: [{` + to + `}]`, "spec.exportTo[0]"},
		{`hosts: [web], exportTo: [".", a], http: [{` + to + `}]`, "spec.exportTo[1]"},
		{`hosts: [web], exportTo: ["~"], http: [{` + to + `}]`, "spec.exportTo[0]"},
		{`http: [{delegate: {name: x}}]`, "spec.http[0].delegate"},
		// Istio warns only: the second route and the second match are never used.
		{`hosts: [web], http: [{` + to + `}, {` + to + `}]`, ""},
		{`hosts: [web], http: [{match: [{uri: {exact: /}}, {uri: {exact: /}}], ` + to + `}]`, ""},
		{`hosts: [web], tcp: [{match: [{port: 80}], ` + to + `}, {match: [{port: 80}], ` + to + `}]`, ""},
	})
	judged(t, "DestinationRule", "spec: {host: web, …}", [][2]string{
		{`trafficPolicy: {}`, "spec.trafficPolicy"},
		{`trafficPolicy: {connectionPool: {}}`, "spec.trafficPolicy.connectionPool"},
		{`trafficPolicy: {portLevelSettings: [{port: {number: 80}}]}`, "spec.trafficPolicy.portLevelSettings[0]"},
		{`trafficPolicy: {tunnel: {targetHost: a.com, targetPort: 80}, proxyProtocol: {version: V1}}`,
			"spec.trafficPolicy"},
		{`trafficPolicy: {loadBalancer: {consistentHash: {useSourceIp: true, minimumRingSize: 1, maglev: {tableSize: 7}}}}`,
			"spec.trafficPolicy.loadBalancer.consistentHash.minimumRingSize"},
		{`subsets: [{name: a.b}]`, "spec.subsets[0].name"},
		{`subsets: [{name: v1}, {name: v1}]`, "spec.subsets[1].name"},
		{`workloadSelector: {matchLabels: {a: b}}, exportTo: ["*"]`, "spec.exportTo"},
		{`workloadSelector: {matchLabels: {a: b}}, exportTo: ["."]`, ""},
	})
	judged(t, "Gateway", "spec: {servers: [{…}]}", [][2]string{
		{`port: {number: 80, name: http, protocol: HTTP, targetPort: 8080}, hosts: ["*"]`,
			"spec.servers[0].port.targetPort"},
		{`port: {number: 443, name: https, protocol: HTTPS}, hosts: ["*"], tls: {mode: SIMPLE, credentialName: a, credentialNames: [b]}`,
			"spec.servers[0].tls"},
		{`port: {number: 443, name: https, protocol: HTTPS}, hosts: ["*"], tls: {mode: SIMPLE, serverCertificate: /a, privateKey: /b, caCrl: /c}`,
			"spec.servers[0].tls.caCrl"},
		{`port: {number: 443, name: https, protocol: HTTPS}, hosts: ["*"], tls: {mode: MUTUAL, credentialNames: [a], caCrl: /c}`,
			"spec.servers[0].tls.caCrl"},
		{`port: {number: 443, name: https, protocol: HTTPS}, hosts: ["*"], tls: {mode: MUTUAL, serverCertificate: /a, privateKey: /b, ` +
			`caCertCredentialName: d, caCrl: /c}`, "spec.servers[0].tls.caCrl"},
		{`port: {number: 443, name: https, protocol: HTTPS}, hosts: ["*"], tls: {mode: ISTIO_MUTUAL, caCrl: /c}`, ""},
	})
	judged(t, "Sidecar", "spec: {…}", [][2]string{
		{`egress: [{hosts: ["./*"]}, {hosts: ["*/*"]}]`, "spec.egress[0].port"},
		{`egress: [{port: {number: 80, name: a, protocol: HTTP}, hosts: ["./*"]}, {port: {number: 80, name: b, protocol: HTTP}, hosts: ["./*"]}]`,
			"spec.egress[1].port.number"},
		{`egress: [{port: {number: 80, name: a, protocol: HTTP}, hosts: ["./*"]}, {hosts: ["./*"]}]`, ""},
		{`egress: [{port: {number: 0, name: a, protocol: HTTP}, bind: "unix:///a", captureMode: IPTABLES, hosts: ["./*"]}]`,
			"spec.egress[0].captureMode"},
		{`ingress: [{port: {number: 80, name: a, protocol: HTTP}, defaultEndpoint: "127.0.0.1:80"}, {port: {number: 80, name: b, protocol: HTTP}, defaultEndpoint: "127.0.0.1:81"}]`,
			"spec.ingress[1].port.number"},
		{`ingress: [{port: {number: 443, name: a, protocol: HTTPS}, defaultEndpoint: "127.0.0.1:80", tls: {mode: SIMPLE, credentialName: x}}]`,
			"spec.ingress[0].tls"},
		{`ingress: [{port: {number: 443, name: a, protocol: HTTPS}, tls: {mode: SIMPLE}}]`, "spec.ingress[0].tls"},
		{`ingress: [{port: {number: 443, name: a, protocol: TLS}, tls: {mode: MUTUAL, serverCertificate: /c, privateKey: /k}}]`,
			"spec.ingress[0].tls.caCertificates"},
		{`ingress: [{port: {number: 443, name: a, protocol: TLS}, tls: {mode: SIMPLE, serverCertificate: /c, privateKey: /k}}]`,
			""},
		{`outboundTrafficPolicy: {mode: REGISTRY_ONLY, egressProxy: {host: a.b.com, port: {number: 80}}}`,
			"spec.outboundTrafficPolicy.egressProxy"},
		{`outboundTrafficPolicy: {mode: ALLOW_ANY, egressProxy: {host: a.b.com}}`,
			"spec.outboundTrafficPolicy.egressProxy.port"},
		// Istio warns only: a host is there twice.
		{`egress: [{hosts: ["./*", "./web.a.svc.cluster.local"]}]`, ""},
	})
}

// TestEnvoysRulesOfTheMesh: what Envoy would refuse in every cluster or listener is refused of the mesh configuration.
func TestEnvoysRulesOfTheMesh(t *testing.T) {
	for text, want := range map[string]string{
		"dnsRefreshRate: 0s": "dnsRefreshRate", "connectTimeout: 0s": "connectTimeout",
		"tlsDefaults: {cipherSuites: [AES128-SHA, FOO]}":           "tlsDefaults.cipherSuites[1]",
		"tlsDefaults: {ecdhCurves: [P-256, P-224]}":                "tlsDefaults.ecdhCurves[1]",
		"tcpKeepalive: {time: -1s}":                                "tcpKeepalive.time",
		"defaultTrafficPolicy: {outlierDetection: {interval: 0s}}": "defaultTrafficPolicy.outlierDetection.interval",
		"tlsDefaults: {cipherSuites: [AES128-SHA]}":                "",
	} {
		_, p := parseMesh(text)
		if p == nil && want != "" || p != nil && p.field != want {
			t.Errorf("%s: %+v, want %q", text, p, want)
		}
	}
}

// TestUnknownCipherSuitesAreLeftOut: as istiod does it, a Gateway goes on with the suites that Envoy knows.
func TestUnknownCipherSuitesAreLeftOut(t *testing.T) {
	events := decode(t, "kube",
		"kind: Gateway\nmetadata: {name: g, namespace: a}\nspec: {servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: [\"*\"], tls: {mode: SIMPLE, credentialName: c, cipherSuites: [TLS_AES_128_GCM_SHA256, AES128-SHA, FOO, AES128-SHA]}}]}")
	k := newKeeper()
	s := NewStore(k, quiet(t), "kube")
	s.Synced("kube")
	s.Apply(events)
	got := k.whole.Objects[events[0].Key].New.(*value.Gateway).Servers[0].TLS.Ciphers
	if len(got) != 1 || got[0] != "AES128-SHA" {
		t.Fatalf("%v, refused: %v", got, s.Rejections())
	}
}

// TestKubernetesVerdicts: Services that no API server would store are refused when a directory has them.
func TestKubernetesVerdicts(t *testing.T) {
	judged(t, "Service", "spec: {ports: […]}", [][2]string{
		{`{port: 80}, {port: 81, name: b}`, "spec.ports[0].name"},
		{`{port: 80, name: a}, {port: 81, name: a}`, "spec.ports[1].name"},
		{`{port: 80, name: a}, {port: 80, name: b}`, "spec.ports[1].port"},
		{`{port: 53, name: a, protocol: UDP}, {port: 53, name: b}`, ""},
		{`{port: 80, protocol: HTTP}`, "spec.ports[0].protocol"},
		{`{port: 80, name: a_b}`, "spec.ports[0].name"},
		{`{port: 80, targetPort: 65536}`, "spec.ports[0].targetPort"},
		{`{port: 65536}`, "spec.ports[0].port"},
	})
	judged(t, "Service", "spec: {…}", [][2]string{
		{`clusterIP: nowhere`, "spec.clusterIP"}, {`clusterIPs: [10.0.0.1, "fe80::1%eth0"]`, "spec.clusterIPs[1]"},
		{`clusterIP: None`, ""},
	})
}

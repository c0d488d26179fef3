package ingest

import (
	"fmt"
	"strings"
	"testing"
)

// verdictOf returns why the only object of a text is refused, nil if it is not.
func verdictOf(t testing.TB, text string) *problem {
	t.Helper()
	events := decode(t, "kube", text)
	if len(events) != 1 {
		t.Fatalf("%d objects in\n%s", len(events), text)
	}
	return verdict(events[0])
}

// judged is a table of specs: of one kind, each with the field that is refused, or "" where the object is in force.
func judged(t *testing.T, kind, wrap string, cases [][2]string) {
	t.Helper()
	for _, c := range cases {
		text := fmt.Sprintf("kind: %s\nmetadata: {name: x, namespace: a}\n%s", kind,
			strings.Replace(wrap, "…", c[0], 1))
		p := verdictOf(t, text)
		switch {
		case p == nil && c[1] != "":
			t.Errorf("%s is in force, want %s refused", c[0], c[1])
		case p != nil && p.field != c[1]:
			t.Errorf("%.200s: refused for %s (%s), want %q", c[0], p.field, p.reason, c[1])
		case p != nil && (p.reason == "" || strings.ContainsAny(p.reason, "\n\r") || len(p.reason) > 600):
			t.Errorf("%.200s: reason %q", c[0], p.reason)
		}
	}
}

// TestEnvoysRulesOfRoutes: what a live Envoy refuses in a route is refused of the VirtualService, and what it takes is
// not.
func TestEnvoysRulesOfRoutes(t *testing.T) {
	const to = `route: [{destination: {host: web}}]`
	headers := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "x-%d: v, ", i)
		}
		return "{" + strings.TrimSuffix(b.String(), ", ") + "}"
	}
	weights := func(w ...int) string {
		var all []string
		for i, n := range w {
			all = append(all, fmt.Sprintf("{destination: {host: web, subset: v%d}, weight: %d}", i, n))
		}
		return "route: [" + strings.Join(all, ", ") + "]"
	}
	long := strings.Repeat("a", 16<<10)
	judged(t, "VirtualService", "spec: {hosts: [web], http: [{…}]}", [][2]string{
		{`match: [{uri: {regex: ""}}], ` + to, "spec.http[0].match[0].uri.regex"},
		{`match: [{headers: {x: {regex: ""}}}], ` + to, "spec.http[0].match[0].headers.x.regex"},
		{`match: [{queryParams: {x: {regex: ""}}}], ` + to, "spec.http[0].match[0].queryParams.x.regex"},
		{`match: [{queryParams: {"": {exact: a}}}], ` + to, `spec.http[0].match[0].queryParams[""]`},
		{`match: [{uri: {regex: "[0-9a-z]{99}"}}], ` + to, ""},
		{`match: [{uri: {regex: "/users/[0-9a-f-]{36}/.*"}}], ` + to, ""},
		{`match: [{uri: {regex: "(abcdefghijklmnopqrstuvwxyz0123456){1000}"}}], ` + to,
			"spec.http[0].match[0].uri.regex"},
		{`match: [{uri: {regex: "(a?b?c?d?e?f?g?h?i?j?k?l?m?n?o?p?){1000}"}}], ` + to,
			"spec.http[0].match[0].uri.regex"},
		{`match: [{uri: {regex: "[0-9]{1,20}"}}], ` + to, ""},
		{`match: [{uri: {regex: "\\p{greek}"}}], ` + to, "spec.http[0].match[0].uri.regex"},
		{`match: [{uri: {regex: "\\C"}}], ` + to, ""},
		{`match: [{headers: {"x\ny": {exact: a}}}], ` + to, `spec.http[0].match[0].headers["x y"]`},
		{`headers: {request: {set: {"x\ny": a}}}, ` + to, `spec.http[0].headers.request.set["x y"]`},
		{`headers: {request: {set: {x: "a\nb"}}}, ` + to, "spec.http[0].headers.request.set.x"},
		{`headers: {request: {set: {x: "a\0b"}}}, ` + to, "spec.http[0].headers.request.set.x"},
		{`headers: {response: {remove: [ok, "a\rb"]}}, ` + to, "spec.http[0].headers.response.remove[1]"},
		{`headers: {request: {set: {x: "%FOO%"}}}, ` + to, "spec.http[0].headers.request.set.x"},
		{`headers: {request: {add: {x: "100%"}}}, ` + to, "spec.http[0].headers.request.add.x"},
		{`headers: {request: {set: {x: "100%%", y: "%REQ(a)%", z: "%DOWNSTREAM_REMOTE_ADDRESS%"}}}, ` + to, ""},
		{`headers: {request: {set: {host: "100%"}}}, ` + to, ""},
		{`headers: {request: {set: {x: ` + long + `}}}, ` + to, ""},
		{`headers: {request: {set: {x: ` + long + `a}}}, ` + to, "spec.http[0].headers.request.set.x"},
		{`headers: {request: {set: ` + headers(1000) + `}}, ` + to, ""},
		{`headers: {request: {set: ` + headers(1001) + `}}, ` + to, "spec.http[0].headers.request"},
		{`headers: {response: {set: ` + headers(1000) +
			`}}, route: [{destination: {host: web}, headers: {response: {add: {x: a}}}}]`,
			"spec.http[0].route[0].headers.response"},
		{`rewrite: {uri: "/a\nb"}, ` + to, "spec.http[0].rewrite.uri"},
		{`rewrite: {authority: "a\nb"}, ` + to, "spec.http[0].rewrite.authority"},
		{`rewrite: {uriRegexRewrite: {match: "(a)", rewrite: '/\2'}}, ` + to,
			"spec.http[0].rewrite.uriRegexRewrite.rewrite"},
		{`rewrite: {uriRegexRewrite: {match: "(a)", rewrite: '/\1'}}, ` + to, ""},
		{`rewrite: {uriRegexRewrite: {match: "a{99}{99}", rewrite: '/'}}, ` + to,
			"spec.http[0].rewrite.uriRegexRewrite.match"},
		{`redirect: {uri: "/a\nb"}`, "spec.http[0].redirect.uri"},
		{`redirect: {authority: "a\nb"}`, "spec.http[0].redirect.authority"},
		{`retries: {attempts: 1, backoff: 0s}, ` + to, "spec.http[0].retries.backoff"},
		{`retries: {attempts: 1, backoff: 1ms}, ` + to, ""},
		{`retries: {attempts: 1, perTryTimeout: -1s}, ` + to, "spec.http[0].retries.perTryTimeout"},
		{`timeout: -1s, ` + to, "spec.http[0].timeout"},
		{`timeout: 9223372036s, ` + to, "spec.http[0].timeout"},
		{`timeout: 0s, ` + to, ""},
		{weights(2147483647, 2147483647, 2), "spec.http[0].route"},
		{weights(2147483647, 2147483647, 1), ""},
		{`corsPolicy: {allowOrigins: [{prefix: ""}]}, ` + to, "spec.http[0].corsPolicy.allowOrigins[0].prefix"},
		{`corsPolicy: {allowOrigins: [{regex: "(abcdefghijklmnopqrstuvwxyz0123456){1000}"}]}, ` + to,
			"spec.http[0].corsPolicy.allowOrigins[0].regex"},
		{`corsPolicy: {allowMethods: [GET, "A\nB"]}, ` + to, "spec.http[0].corsPolicy.allowMethods[1]"},
		{`fault: {delay: {fixedDelay: 0s, percentage: {value: 1}}}, ` + to, "spec.http[0].fault.delay.fixedDelay"},
		{`fault: {abort: {httpStatus: 600, percentage: {value: 1}}}, ` + to, "spec.http[0].fault.abort.httpStatus"},
		{`directResponse: {status: 600}`, "spec.http[0].directResponse.status"},
	})
	judged(t, "VirtualService",
		"spec: {hosts: ['*foo.com'], tls: [{match: [{port: 443, …}], route: [{destination: {host: web}}]}]}",
		[][2]string{
			{`sniHosts: ["*foo.com"]`, "spec.tls[0].match[0].sniHosts[0]"},
			{`sniHosts: ["*.foo.com"]`, ""},
			{`sniHosts: ["a.foo.com"], destinationSubnets: ["fe80::1%eth0"]`,
				"spec.tls[0].match[0].destinationSubnets[0]"},
			{`sniHosts: ["a.foo.com"], destinationSubnets: ["10.0.0.1/8"]`, ""},
		})
}

// TestEnvoysRulesOfClusters: what a live Envoy refuses in a cluster is refused of the DestinationRule.
func TestEnvoysRulesOfClusters(t *testing.T) {
	const hash = "spec.trafficPolicy.loadBalancer.consistentHash"
	judged(t, "DestinationRule", "spec: {host: web, trafficPolicy: {…}}", [][2]string{
		{`loadBalancer: {consistentHash: {httpHeaderName: ""}}`, hash + ".httpHeaderName"},
		{`loadBalancer: {consistentHash: {httpHeaderName: "a\nb"}}`, hash + ".httpHeaderName"},
		{`loadBalancer: {consistentHash: {httpQueryParameterName: ""}}`, hash + ".httpQueryParameterName"},
		{`loadBalancer: {consistentHash: {httpCookie: {name: c, ttl: -1s}}}`, hash + ".httpCookie.ttl"},
		{`loadBalancer: {consistentHash: {httpCookie: {name: c, ttl: 0s}}}`, ""},
		{`loadBalancer: {consistentHash: {httpCookie: {name: c, attributes: [{name: ""}]}}}`,
			hash + ".httpCookie.attributes[0].name"},
		{`loadBalancer: {consistentHash: {useSourceIp: true, minimumRingSize: 8388608}}`, ""},
		{`loadBalancer: {consistentHash: {useSourceIp: true, minimumRingSize: 8388609}}`, hash + ".minimumRingSize"},
		{`loadBalancer: {consistentHash: {useSourceIp: true, ringHash: {minimumRingSize: 8388609}}}`,
			hash + ".ringHash.minimumRingSize"},
		{`loadBalancer: {consistentHash: {useSourceIp: true, maglev: {tableSize: 65537}}}`, ""},
		{`loadBalancer: {consistentHash: {useSourceIp: true, maglev: {tableSize: 65536}}}`, hash + ".maglev.tableSize"},
		{`loadBalancer: {consistentHash: {useSourceIp: true, maglev: {tableSize: 5000077}}}`,
			hash + ".maglev.tableSize"},
		{`loadBalancer: {simple: ROUND_ROBIN, warmup: {duration: 1s, minimumPercent: 101}}`,
			"spec.trafficPolicy.loadBalancer.warmup.minimumPercent"},
		{`loadBalancer: {simple: ROUND_ROBIN, warmup: {duration: 1s, aggression: -1}}`,
			"spec.trafficPolicy.loadBalancer.warmup.aggression"},
		{`loadBalancer: {simple: ROUND_ROBIN, warmup: {duration: 1s, minimumPercent: 100, aggression: 1.5}}`, ""},
		{`tls: {mode: SIMPLE, sni: ` + strings.Repeat("a", 256) + `}`, "spec.trafficPolicy.tls.sni"},
		{`tls: {mode: SIMPLE, sni: ` + strings.Repeat("a", 255) + `}`, ""},
		{`portLevelSettings: [{port: {number: 80}, tls: {mode: SIMPLE, sni: "a\0b"}}]`,
			"spec.trafficPolicy.portLevelSettings[0].tls.sni"},
		{`connectionPool: {tcp: {connectTimeout: 0s}}`, "spec.trafficPolicy.connectionPool.tcp.connectTimeout"},
		{`connectionPool: {tcp: {tcpKeepalive: {time: -1s}}}`,
			"spec.trafficPolicy.connectionPool.tcp.tcpKeepalive.time"},
		{`connectionPool: {http: {http2KeepAlive: {interval: 1s}}}`,
			"spec.trafficPolicy.connectionPool.http.http2KeepAlive.timeout"},
		{`connectionPool: {http: {idleTimeout: -1s}}`, "spec.trafficPolicy.connectionPool.http.idleTimeout"},
		{`outlierDetection: {maxEjectionPercent: 101}`, "spec.trafficPolicy.outlierDetection.maxEjectionPercent"},
		{`retryBudget: {percent: 101}`, "spec.trafficPolicy.retryBudget.percent"},
	})
}

// TestEnvoysRulesOfListeners: what a live Envoy refuses in a listener is refused of the Gateway, Sidecar or
// ServiceEntry.
func TestEnvoysRulesOfListeners(t *testing.T) {
	const server = "spec.servers[0]"
	mutual := "port: {number: 443, name: https, protocol: HTTPS}, hosts: [a.foo.com], tls: {mode: MUTUAL, credentialName: c, "
	hash := strings.Repeat("aa", 32)
	judged(t, "Gateway", "spec: {servers: [{…}]}", [][2]string{
		{`port: {number: 443, name: https, protocol: HTTPS}, hosts: ["*foo.com"], tls: {mode: SIMPLE, credentialName: c}`,
			server + ".hosts[0]"},
		{`port: {number: 443, name: tls, protocol: TLS}, hosts: ["./*foo.com"], tls: {mode: PASSTHROUGH}`,
			server + ".hosts[0]"},
		{`port: {number: 443, name: tls, protocol: TLS}, hosts: ["./*", "*.foo.com"], tls: {mode: PASSTHROUGH}`, ""},
		{`port: {number: 80, name: http, protocol: HTTP}, hosts: ["*foo.com"]`, ""},
		{mutual + `verifyCertificateHash: [` + hash + `]}`, ""},
		{mutual + `verifyCertificateHash: ["` + strings.Repeat("aa:", 31) + `aa"]}`, ""},
		{mutual + `verifyCertificateHash: [` + hash + `, ` + strings.Repeat("zz", 32) + `]}`,
			server + ".tls.verifyCertificateHash[1]"},
		{mutual + `verifyCertificateHash: [abc]}`, server + ".tls.verifyCertificateHash[0]"},
		{mutual + `verifyCertificateSpki: ["NvqYIYSbgK2vCJpQhObf77vv+bQWtc5ek5RIOwPiC9A="]}`, ""},
		{mutual + `verifyCertificateSpki: ["NvqYIYSbgK2vCJpQhObf77vv+bQWtc5ek5RIOwPiCQ=="]}`,
			server + ".tls.verifyCertificateSpki[0]"},
		{`port: {number: 80, name: http, protocol: HTTP}, bind: "fe80::1%eth0", hosts: ["*"]`, server + ".bind"},
	})
	judged(t, "Sidecar", "spec: {ingress: [{…}]}", [][2]string{
		{`port: {number: 0, name: http, protocol: HTTP}, bind: "unix:///run/x.sock", defaultEndpoint: "127.0.0.1:80"`,
			"spec.ingress[0].port.number"},
		{`port: {number: 80, name: http, protocol: HTTP}, bind: "unix:///run/x.sock", defaultEndpoint: "127.0.0.1:80"`,
			"spec.ingress[0].bind"},
		{`port: {number: 80, name: http, protocol: HTTP}, bind: "::", defaultEndpoint: "127.0.0.1:80"`, ""},
		{`port: {number: 80, name: http, protocol: HTTP}, defaultEndpoint: "unix:///` + strings.Repeat("a", 107) + `"`,
			"spec.ingress[0].defaultEndpoint"},
	})
	judged(t, "ServiceEntry", "spec: {hosts: ['*foo.com'], resolution: NONE, ports: [{number: 443, name: p, protocol: …}]}",
		[][2]string{{"TLS", "spec.hosts[0]"}, {"HTTPS", "spec.hosts[0]"}, {"HTTP", ""}, {"TCP", ""}})
}

// TestEnvoysRulesOfEndpoints: what a live Envoy refuses in an assignment of endpoints is refused of the object that
// says it.
func TestEnvoysRulesOfEndpoints(t *testing.T) {
	judged(t, "WorkloadEntry", "spec: {…}", [][2]string{
		{`address: "fe80::1%eth0"`, "spec.address"},
		{`address: "fe80::1"`, ""},
		{`address: "unix:///` + strings.Repeat("a", 106) + `"`, ""},
		{`address: "unix:///` + strings.Repeat("a", 107) + `"`, "spec.address"},
		{`address: 1.2.3.4, ports: {http: 65536}`, "spec.ports.http"},
	})
	judged(t, "ServiceEntry", "spec: {hosts: [x.com], resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], "+
		"endpoints: [{…}]}", [][2]string{
		{`address: "fe80::1%eth0"`, "spec.endpoints[0].address"},
		{`address: "unix:///` + strings.Repeat("a", 107) + `"`, "spec.endpoints[0].address"},
		{`address: "unix://@` + strings.Repeat("a", 106) + `"`, ""},
	})
	judged(t, "EndpointSlice", "addressType: IPv6\nendpoints: [{addresses: …}]", [][2]string{
		{`["fe80::1%eth0"]`, "endpoints[0].addresses[0]"},
		{`["fe80::1"]`, ""},
	})
	judged(t, "Pod", "spec: {containers: [{name: a}, {name: b, ports: [{name: http, containerPort: 80}, "+
		"{name: x, containerPort: …}]}]}", [][2]string{
		{"65536", "spec.containers[1].ports[1].containerPort"}, {"0", "spec.containers[1].ports[1].containerPort"},
		{"65535", ""},
	})
	judged(t, "Pod", "status: {podIP: …}", [][2]string{{`"fe80::1%eth0"`, "status.podIP"}, {`nothing`, "status.podIP"},
		{`"fd00::1"`, ""}})
}

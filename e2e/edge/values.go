package edge

import (
	"encoding/json"
	"math/rand/v2"
	"strings"

	"istio.io/api/annotation"
	"istio.io/api/label"
)

// badUTF8 stands in a string of a tree for a byte that is no UTF-8, which JSON written by hand can carry. JSON replaces
// it.
const badUTF8 = "\uE0FF"

// Values returns the edge values that a field of that shape at that path can have, as JSON trees.
func Values(s *Shape, at Path) []any {
	switch s.Form {
	case Struct:
		return []any{map[string]any{}, nil}
	case List:
		return []any{[]any{}, []any{nil}}
	case Map:
		return []any{map[string]any{}}
	case String:
		return texts(at)
	case Bytes:
		return []any{"", "AA==", "////", "no base64!"}
	case Enum:
		out := []any{99, -1, 2147483647, "NO_SUCH_VALUE", ""}
		for _, n := range s.Names {
			out = append(out, n)
		}
		return out
	case Bool:
		return []any{true, false}
	case Integer:
		return integers(s)
	case Float:
		return list(0, -1, -0.1, 0.0001, 50, 99.9999, 100, 100.0001, 1e-300, 1e308, "NaN", "Infinity", "-Infinity", 1,
			2)
	case Duration:
		return list("0s", "-1s", "0.000001s", "0.000999s", "0.001s", "0.0015s", "1s", "0.250s", "3600s", "86400s",
			"31536000s", "315576000s", "2147483648s",
			"4294967296s", "9223372036s", "9223372037s", "315576000000s", "315576000001s", "-315576000000s", "1h",
			"10ms", "1d", "", "s")
	case Timestamp:
		return list("2024-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "", "yesterday")
	case IntOrString:
		return list(0, 1, 80, 8080, -1, 65535, 65536, 2147483647, "http", "http-name", "", "80", "no such name",
			strings.Repeat("n", 64))
	case Quantity:
		return list("0", "1", "-1", "1e30", "1Ki", "x")
	}
	return []any{nil, true, 1e300, "", "a\nb", []any{}, map[string]any{}, map[string]any{"": nil},
		map[string]any{"@type": "type.googleapis.com/none"},
		map[string]any{"a": []any{map[string]any{"b": strings.Repeat("x", 2000)}}}}
}

func list(values ...any) []any { return values }

// integers leaves out 8388608, which Envoy allows as a hash ring's size (such a ring takes minutes and the test's
// memory), and 15000, the port of Envoy's admin page, on which no listener can be.
func integers(s *Shape) []any {
	out := list(0, 1, 2, 3, -1, 99, 100, 101, 127, 128, 199, 200, 255, 256, 503, 599, 600, 999, 1000, 1024, 15001,
		15006, 65535, 65536, 65537,
		8388609, 1<<31-1, -(1 << 31))
	if s.Unsigned || s.Wide {
		out = append(out, int64(1<<31), int64(1<<32-1))
	}
	if s.Wide {
		out = append(out, json.Number("4294967296"), json.Number("9223372036854775807"),
			json.Number("-9223372036854775808"), json.Number("18446744073709551615"))
	}
	return out
}

// class is what a string means, as far as its field's name tells.
type class struct {
	names  string // parts of field names, lower case, separated by spaces
	values []any
}

// texts returns the edge values of a string: those of its class twice as often as those of all strings.
func texts(at Path) []any {
	if at[len(at)-1] == "caCrl" {
		return list("") // Whether a proxy has a file, only the proxy can judge: testdata/machine.txtar has the case.
	}
	name := ""
	for i := len(at) - 1; i >= 0; i-- {
		if at[i] != "[]" && at[i] != "{}" {
			name = strings.ToLower(at[i])
			break
		}
	}
	var out []any
	for _, c := range classes() {
		for part := range strings.FieldsSeq(c.names) {
			if strings.Contains(name, part) {
				out = append(out, c.values...)
				break
			}
		}
	}
	if len(at) > 1 && at[0] == "metadata" {
		out = append(out, anyText()...)
	}
	return append(append(out, out...), anyText()...)
}

// anyText returns values that any string may have.
func anyText() []any {
	return list("", " ", "a", "A", "0", "-1", "a b", "a\nb", "a\r\nx: y", "a\tb", "\x00", "a\x00b", "\x7f",
		"a"+badUTF8+"b", "é", "münchen", "\u202eabc", "😀",
		"%", "%%", "100%", "%BOGUS%", "%REQ(x)%", "%REQ(%", "%START_TIME%", "%DOWNSTREAM_REMOTE_ADDRESS%", "%PROTOCOL",
		"${x}", "$1", `\1`, `\99`, `\`,
		`"`, "'", "{}", "{", "[", "(", "*", "**", "*a", "a*", "a*b", ".", "..", "/", "//", "a/", "/a", "a/b/c", ":",
		"a:80", "@", "#", "?", "a=b", ",", "a,b", "~", "|", "a|b",
		"true", "null", strings.Repeat("x", 63), strings.Repeat("x", 64), strings.Repeat("x", 255),
		strings.Repeat("x", 256), strings.Repeat("x", 1025),
		strings.Repeat("x", 16385), strings.Repeat("a.", 200)+"b")
}

func regexes() []any {
	return list("", "a", ".*", ".+", "^/.*$", "(", "[", "a**", "(?=x)", `\C`, `(a)\1`, "(?P<n>a)", "(?P<>a)", "a{1001}",
		"a{1000}", "(a{1000}){1000}", "((a{100}){100}){100}",
		"("+strings.Repeat("(a|b)?", 500)+")", `[\pL\pN]{800}`, ".{1000}", strings.Repeat("[a-z]+", 300), `(?i)ab`,
		`\x{10FFFF}`, `\x{110000}`, "[[:alpha:]]", "[z-a]",
		"\\Qa\\E", "(?s).", "(?i)(?m)^$", `\pN{1}`, "a"+badUTF8, "\x00", "a\nb", strings.Repeat("a", 5000))
}

func addresses() []any {
	return list("1.2.3.4", "10.244.60.1", "01.02.03.004", "1.2.3", "1.2.3.4.5", "256.1.1.1", "0.0.0.0",
		"255.255.255.255", "127.0.0.1", "224.0.0.1", "169.254.169.254",
		"::", "::1", "0:0:0:0:0:0:0:1", "FE80::1", "fe80::1", "fe80::1%eth0", "::ffff:1.2.3.4", "::ffff:0102:0304",
		"2001:db8::1", "2001:DB8:0:0:0:0:0:1",
		"[::1]", "[2001:db8::1]", "1.2.3.4/0", "1.2.3.4/8", "1.2.3.0/24", "1.2.3.4/32", "1.2.3.4/33", "1.2.3.4/-1",
		"0.0.0.0/0", "::/0", "2001:db8::/32", "2001:db8::1/129",
		"1.2.3.4:80", "[::1]:80", "unix:///tmp/s", "unix://@abstract", "unix://", "unix:///"+strings.Repeat("p", 99),
		"unix:///"+strings.Repeat("p", 108), "unix://"+strings.Repeat("p", 20),
		"unix:///a\x00b", "unix:///dir/", "unix:/a", "localhost", "0x7f000001", "2130706433", "0.0.0.0:8080",
		"10.244.1.1")
}

func hosts() []any {
	return list("*", "*.com", "*.hostile.example.com", "*hostile.example.com", "a.*.com", "*.*.com", "*.",
		"x.hostile.example.com", "X.Hostile.Example.COM", "x.hostile.example.com.",
		"h0/x.hostile.example.com", "*/x.hostile.example.com", "./x.hostile.example.com", "~/*", "./*", "*/*", "h0/*",
		"no-such/x.com", "x.hostile.example.com:80", "-a.com", "a-.com", "a..b",
		"a_b.hostile.example.com", "t0", "t0.h0", "t0.h0.svc", "t0.h0.svc.cluster.local",
		"no-such.h0.svc.cluster.local", "xn--mnchen-3ya.de", "münchen.de", "1.2.3.4", "::1", "[::1]", "123", "a.123",
		strings.Repeat("a", 63)+".com", strings.Repeat("a", 64)+".com", strings.Repeat("a.", 126)+
			"com", strings.Repeat("a.", 130)+"com", strings.Repeat("abcdefgh.", 27)+"hostile.example.com")
}

func headerNames() []any {
	return list("x-a", "X-A", ":path", ":authority", ":scheme", ":method", ":status", ":bogus", "host", "Host", "te",
		"connection", "content-length", "transfer-encoding",
		"x a", "x:a", "x\na", "x-envoy-retry-on", "x-forwarded-for", "@request.auth.claims.sub",
		"@request.auth.claims[a][b]", "_", strings.Repeat("h", 300))
}

func classes() []class {
	paths := list("/", "/a", "a", "", "/a b", "/a\nb", "/%0a", "/%zz", "/a?b", "/a#b", "//", "/{a}", "/{*}", "/{**}",
		"/{**}/{**}", "/*/{*}", "/a{*}", "/{", "/..", "/"+strings.Repeat("a", 9000), "%REQ(x)%", "/%PATH%", `/\1`, "*",
		"/*")
	return []class{
		{"regex expression substitution pattern", regexes()},
		{"address ip cidr subnet", addresses()},
		// Which other addresses and ports a proxy can bind depends on its machine alone: see testdata/machine.txtar.
		{"bind", list("0.0.0.0", "::", "[::]", "127.0.0.1", "0:0:0:0:0:0:0:0", "1.2.3", "1.2.3.4/8", "1.2.3.4:80",
			"unix:///tmp/s", "unix://", "unix:///"+strings.Repeat("p", 108), "localhost")},
		{"host domain authority sni", hosts()},
		{"uri path prefix rewrite redirect", paths},
		{"header remove add set cookie query name httpheadername", headerNames()},
		{"exportto namespace", list("*", ".", "~", "h0", "good", "no-such", "*,.", "A", "a.b", "h0,h1")},
		{"protocol appprotocol", list("HTTP", "http", "HTTPS", "GRPC", "GRPC-WEB", "GRPC_WEB", "HTTP2", "TCP", "TLS",
			"UDP", "SCTP", "MONGO", "REDIS", "MYSQL", "HTTP_PROXY", "HTTP3", "AUTO", "kubernetes.io/h2c",
			"kubernetes.io/ws", "kubernetes.io/wss")},
		{"certificate key credential", list("/etc/certs/a.pem", "relative.pem", "kubernetes://a",
			"kubernetes-gateway://a/b", "builtin://", "invalid://", "file-root:/a", "sds", "a/b", "a~b", "/dev/null",
			"no-such", "-cacert", "ROOTCA", "default")},
		{"hash spki subject", list(strings.Repeat("a", 64), strings.Repeat("A", 64), strings.Repeat("ab:", 31)+"ab",
			strings.Repeat("AB:", 31)+"AB", strings.Repeat("a", 63), strings.Repeat("g",
				64), "NvqYIYSbgK2vCJpQhObf77vv+bQWtc5ek5RIOwPiC9A=", "NvqYIYSbgK2vCJpQhObf77vv+bQWtc5ek5RIOwPiC9A",
			"spiffe://a/b", "*", "spiffe://*", "a*")},
		{"cipher", list("ECDHE-RSA-AES128-GCM-SHA256", "AES128-SHA", "BOGUS", "TLS_AES_128_GCM_SHA256",
			"ecdhe-rsa-aes128-gcm-sha256", "[ECDHE-RSA-AES128-GCM-SHA256|AES128-SHA]", "-ALL", "!X")},
		{"curve ecdh", list("P-256", "X25519", "BOGUS", "P-521")},
		{"locality region zone from to failover", list("*", "r1", "r1/*", "r1/z1", "r1/z1/*", "r1/z1/s1", "r1/z1/s1/x",
			"/", "//", "*/z1", "r1//s1")},
		{"subset", list("v1", "v2", "no-such", "V1", "a|b", "a.b", "v1 ")},
		{"gateways", list("mesh", "h0/front", "front", "no-such/none", "./front", "*/front", "good/front",
			"istio-system/front", "a.b.svc.cluster.local")},
		{"network", list("n1", "n2", "a|b")},
		{"retryon", list("5xx", "gateway-error", "503", "99", "700", "5xx,bogus", "retriable-status-codes",
			"reset, 5xx", "cancelled,deadline-exceeded", ",", "5XX", "retriable-headers", "envoy-ratelimited",
			"http3-post-connect-failure")},
		{"method", list("GET", "get", "BOGUS", "G E T", "*")},
		{"origin", list("*", "http://a", "https://a:8080", "null")},
		{"maxage", list("24h", "0", "10")},
		{"clusterip loadbalancerip externalip", list("None", "10.97.200.1", "2001:db8::2", "none")},
		{"addresstype", list("IPv4", "IPv6", "FQDN", "ipv4")},
		{"type", list("ClusterIP", "NodePort", "LoadBalancer", "ExternalName", "Bogus", "Ready")},
		{"externalname", list("a.example.com", "1.2.3.4", "t0.h0.svc.cluster.local", "a.example.com.")},
		{"phase", list("Running", "Pending", "Succeeded", "Failed", "Unknown")},
		{"trafficdistribution", list("PreferClose", "PreferSameZone", "PreferSameNode")},
		{"policy", list("Cluster", "Local", "SingleStack", "PreferDualStack", "RequireDualStack")},
		{"labels", list("r1.z1", "v1", "istio-locality", "wl", "hostile-sidecar", "a*")},
		{"annotations", list("none", "0", "true", "h0", "PreferClose", "80,443", "{", "{\"a\":1}", "[]")},
	}
}

// mapKey returns a key for a map at that path: one that something reads, or any text.
func mapKey(rnd *rand.Rand, at Path) string {
	name := at[len(at)-1]
	switch {
	case len(at) == 2 && at[0] == "metadata" && name == "annotations":
		if all := annotation.AllResourceAnnotations(); rnd.IntN(8) > 0 {
			return all[rnd.IntN(len(all))].Name
		}
	case len(at) == 2 && at[0] == "metadata" && name == "labels":
		if keys := labelKeys(); rnd.IntN(8) > 0 {
			return keys[rnd.IntN(len(keys))]
		}
	case strings.Contains(strings.ToLower(name), "header") || name == "add" || name == "set" || name == "request" ||
		name == "response":
		headers := headerNames()
		return headers[rnd.IntN(len(headers))].(string)
	case name == "labels" || name == "selector" || name == "matchLabels":
		if keys := labelKeys(); rnd.IntN(2) > 0 {
			return keys[rnd.IntN(len(keys))]
		}
	case name == "ports":
		return []string{"http", "tcp", "no-such", "", "80", "a b"}[rnd.IntN(6)]
	case strings.HasPrefix(name, "distribute") || name == "to":
		return []string{"r1/z1/*", "*", "r1", "r1/*", "", "/", "a/b/c/d"}[rnd.IntN(7)]
	}
	all := anyText()
	return all[rnd.IntN(len(all))].(string)
}

func labelKeys() []string {
	keys := []string{"app", "version", "istio", "istio-locality", "topology.kubernetes.io/region",
		"topology.kubernetes.io/zone", "kubernetes.io/service-name",
		"app.kubernetes.io/name", "app.kubernetes.io/version", "security.istio.io/tlsMode",
		"endpointslice.kubernetes.io/managed-by"}
	for _, l := range label.AllResourceLabels() {
		keys = append(keys, l.Name)
	}
	return keys
}

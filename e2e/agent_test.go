package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/e2e/testnet"
)

// agents is a mesh whose pods run pilotd's own agent, which gets certificates and configuration at the port with TLS.
type agents struct {
	*world
	cluster *parts.Cluster
	roots   string
	// service is where agents find pilotd.
	service *testnet.Relay
}

// secureAt is where a replica of pilotd serves agents.
func secureAt(replica int) string { return fmt.Sprintf("%s:%d", testnet.Host, 25012+replica) }

// replica is what another replica of pilotd reads, with these variables.
func (w *agents) replica(n int, env ...string) parts.Sources {
	s := w.cluster.Sources()
	s.Replica, s.Env, s.Flags = n, env, []string{"--secureGRPCAddr=" + secureAt(n)}
	return s
}

func newAgents(t *testing.T, mesh string) *agents {
	t.Helper()
	w := newAgentsWithoutRoots(t, mesh)
	w.roots = w.cluster.Roots("shop")
	return w
}

// newAgentsWithoutRoots leaves it to its caller to say whom pods trust.
func newAgentsWithoutRoots(t *testing.T, mesh string) *agents {
	t.Helper()
	w := &world{t: t, network: testnet.New(t)}
	cluster := parts.NewCluster(t, parts.StartAPIServer(t))
	w.objects = cluster
	w.objects.Apply(baseMesh() + mesh + `
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: shop}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: istio-system}}
`)
	a := &agents{world: w, cluster: cluster, service: testnet.StartRelay(t, testnet.Host+":15012", secureAt(0))}
	w.pilotd = parts.StartPilotd(t, a.replica(0))
	return a
}

// spec is the agent of a pod.
func (w *agents) spec(p pod, kind parts.ProxyKind, env ...string) parts.AgentSpec {
	return parts.AgentSpec{Kind: kind, Workload: p.workload(), Account: "default", Roots: w.roots, Env: env,
		Token: func() string { return w.cluster.Token(p.namespace, "default") }}
}

// start starts an agent; a sidecar captures the pod's traffic.
func (w *agents) start(p pod, kind parts.ProxyKind, env ...string) (*testnet.Pod, *parts.Agent) {
	w.t.Helper()
	n := w.network.Pod(w.t, p.ip)
	if kind == parts.Sidecar {
		if err := n.Capture(15020, 15021, 15090); err != nil {
			w.t.Fatal(err)
		}
	}
	return n, parts.StartAgent(w.t, n, w.spec(p, kind, env...))
}

func secureService() string {
	return securePod().yaml() + service("shop/secure", secureVIP, "app: secure", "{name: http, port: 80, targetPort: 8080}") +
		slice("secure", "shop", "{name: http, port: 8080, protocol: TCP}", securePod())
}

// asked asks the service that has a sidecar, from a client that has one; without mutual TLS it is an error.
func asked(client *http.Client) error {
	const identity = "URI=spiffe://cluster.local/ns/shop/sa/default"
	a, err := parts.Ask(client, "http://"+secureVIP+":80/", secureHost)
	if err != nil {
		return err
	}
	if cert := a.Header.Get("x-echo-header-x-forwarded-client-cert"); a.Name != "secure" ||
		!strings.Contains(cert, identity) {
		return fmt.Errorf("answer %d %q, client certificate %q: %.200s", a.Status, a.Name, cert, a.Body)
	}
	return nil
}

// TestAgent has pilotd's own agent start sidecars and a gateway: they become ready, speak mutual TLS to each other, get
// new certificates, and go on when pilotd goes away and comes back.
func TestAgent(t *testing.T) {
	w := newAgents(t, secureService()+weights(100, 0))
	w.backends()
	server, inbound := w.start(securePod(), parts.Sidecar,
		`ISTIO_PROMETHEUS_ANNOTATIONS={"scrape":"true","path":"/m","port":"8080"}`,
		`ISTIO_KUBE_APP_PROBERS={"/app-health/app/readyz":{"httpGet":{"path":"/ready","port":8080}},`+
			`"/app-health/app/livez":{"tcpSocket":{"port":8081}}}`)
	parts.StartEcho(t, server, ":8080", "secure")
	client, outbound := w.start(clientDelta(), parts.Sidecar, "SECRET_TTL=8s", "OUTPUT_CERTS=out",
		"EXIT_ON_ZERO_ACTIVE_CONNECTIONS=true", "MINIMUM_DRAIN_DURATION=100ms")
	named, sotw := w.start(clientSotW(), parts.Sidecar, "ISTIO_DELTA_XDS=false", "ISTIO_META_DNS_CAPTURE=true",
		"OUTPUT_CERTS=out")
	_, gateway := w.start(gatewayDelta(), parts.Gateway)
	for _, a := range []*parts.Agent{inbound, outbound, sotw, gateway} {
		a.AwaitReady()
	}
	parts.Eventually(t, "a request is answered over mutual TLS", func() error { return asked(client.Client()) })
	outside := w.network.Pod(t, outsider().ip).Client()
	parts.Eventually(t, "the gateway answers", func() error {
		a, err := parts.Ask(outside, "http://"+gatewayDelta().ip+":8080/", publicHost)
		if err == nil && a.Name != webV1().name {
			err = fmt.Errorf("answer %d %q", a.Status, a.Name)
		}
		return err
	})
	t.Run("modes of mutual TLS", func(t *testing.T) { agentModes(t, w, client.Client(), outside) })
	t.Run("probes and metrics", func(t *testing.T) { agentAnswers(t, inbound) })
	t.Run("names", func(t *testing.T) { agentNames(t, named) })

	before, err := outbound.Request("GET", "certs")
	if err != nil {
		t.Fatal(err)
	}
	parts.Throughout(t, "requests are answered", func() error { return asked(client.Client()) }, func() {
		parts.Eventually(t, "Envoy has another certificate", func() error {
			after, err := outbound.Request("GET", "certs")
			if err == nil && serials(after) == serials(before) {
				err = errors.New("the same")
			}
			return err
		})
		w.pilotd.Kill()
		w.pilotd.Start()
		parts.Eventually(t, "the agents are connected again", func() error { return connected(w.pilotd, 4) })
	})
	for _, a := range []*parts.Agent{inbound, outbound, sotw, gateway} {
		if err := a.Ready(); err != nil {
			t.Error(err)
		}
	}
	t.Run("mounted certificates", func(t *testing.T) { w.mounted(t, sotw, outbound) })
	t.Run("a certificate instead of a token", func(t *testing.T) { w.provisioned(t, outbound) })
	t.Run("no Envoy", w.withoutEnvoy)
	t.Run("it does not start", w.doesNotStart)
	t.Run("the last connection", func(t *testing.T) { w.onZero(t, client, outbound) })
	t.Run("the end", func(t *testing.T) { agentsEnd(t, sotw, gateway) })
}

// agentModes has a PeerAuthentication say who may come to a sidecar, whose certificates are of pilotd's own authority:
// clients with one, without one, or both, for all ports or for one.
func agentModes(t *testing.T, w *agents, meshed, plain *http.Client) {
	policy := func(spec string) string {
		return fmt.Sprintf(`
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: secure, namespace: shop}
spec: {selector: {matchLabels: {app: secure}}, mtls: %s}
`, spec)
	}
	inPlain := func() error {
		a, err := parts.Ask(plain, "http://"+securePod().ip+":8080/", secureHost)
		if err == nil && a.Name != "secure" {
			err = errors.New(fmt.Sprint(a))
		}
		return err
	}
	for _, c := range []struct {
		spec           string
		mutual, inText bool
	}{
		{"{mode: PERMISSIVE}", true, true},
		{"{mode: STRICT}", true, false},
		{"{mode: STRICT}, portLevelMtls: {8080: {mode: PERMISSIVE}}", true, true},
		{"{mode: PERMISSIVE}, portLevelMtls: {8080: {mode: STRICT}}", true, false},
		{"{mode: STRICT}, portLevelMtls: {8080: {mode: DISABLE}}", false, true},
	} {
		w.objects.Apply(policy(c.spec))
		parts.Eventually(t, c.spec, func() error {
			if err := asked(meshed); (err == nil) != c.mutual {
				return fmt.Errorf("mode %s: over mutual TLS: %v", c.spec, err)
			}
			if err := inPlain(); (err == nil) != c.inText {
				return fmt.Errorf("mode %s: in plain text: %v", c.spec, err)
			}
			return nil
		})
	}
	w.objects.Delete(policy("{mode: PERMISSIVE}"))
	parts.Eventually(t, "both are answered", func() error { return errors.Join(asked(meshed), inPlain()) })
}

// agentsEnd has one agent end because its pod does, and one because its Envoy does.
func agentsEnd(t *testing.T, terminated, left *parts.Agent) {
	terminated.Terminate()
	parts.Eventually(t, "a pod that ends is not ready", func() error {
		if _, err := terminated.Page(15020, "/healthz/ready"); err != nil {
			return nil
		}
		return errors.New("it is ready")
	})
	if err := terminated.Ended(); err != nil {
		t.Error(err)
	}
	if _, err := left.Request("POST", "quitquitquit"); err != nil { // asks Envoy, not the agent
		t.Error(err)
	}
	if err := left.Ended(); err != nil {
		t.Error(err)
	}
}

// serials are the lines with serial numbers of Envoy's certificates.
func serials(page string) (out string) {
	for line := range strings.Lines(page) {
		if strings.Contains(line, "serial_number") {
			out += line
		}
	}
	return out
}

// agentNames asks the DNS proxy of a pod for a name of the mesh, and for one that the network's resolver does not know.
func agentNames(t *testing.T, in *testnet.Pod) {
	for _, network := range []string{"udp", "tcp"} {
		r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return in.DialContext(ctx, network, "127.0.0.1:15053")
		}}
		for _, name := range []string{secureHost + ".", "secure.shop.", "secure."} {
			if got, err := r.LookupHost(t.Context(), name); err != nil || len(got) != 1 || got[0] != secureVIP {
				t.Error(network, name, got, err)
			}
		}
		if network == "tcp" {
			continue // which the network's resolver does not serve
		}
		var none *net.DNSError
		if got, err := r.LookupHost(t.Context(), "nobody.example."); !errors.As(err, &none) || !none.IsNotFound {
			t.Error(network, got, err)
		}
	}
}

// agentAnswers asks an agent what the kubelet and Prometheus ask.
func agentAnswers(t *testing.T, a *parts.Agent) {
	if _, err := a.Page(15020, "/app-health/app/readyz"); err != nil {
		t.Error(err)
	}
	if _, err := a.Page(15020, "/app-health/app/livez"); err == nil {
		t.Error("nobody listens at 8081, and the probe is answered")
	}
	if _, err := a.Page(15020, "/quitquitquit"); err == nil {
		t.Error("it can be ended from outside of the pod")
	}
	page, err := a.Page(15020, "/stats/prometheus")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"envoy_server_live{} 1", "istio_agent_cert_expiry_seconds{", "\nsecure\n"} {
		if !strings.Contains(page, want) {
			t.Errorf("the metrics have no %q", want)
		}
	}
	if page, err := a.Page(15090, "/stats/prometheus"); err != nil || !strings.Contains(page, "envoy_server_live{} 1") {
		t.Error("Envoy's own metrics:", err)
	}
}

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/e2e/testnet"
	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/inject"
	"github.com/pilotd/pilotd/inject/injecttest"
)

// secureTwin is another pod of the service that has a sidecar.
func secureTwin() pod {
	return pod{"secure-twin", "shop", "10.244.4.2", "app: secure, security.istio.io/tlsMode: istio"}
}

func secureSlice(pods ...pod) string {
	return slice("secure", "shop", "{name: http, port: 8080, protocol: TCP}", pods...)
}

// strictMesh lets nobody in without mutual TLS.
const strictMesh = `
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: default, namespace: shop}
spec: {mtls: {mode: STRICT}}
`

// injected makes a pod with these annotations what injection makes of it, and starts what it says.
func (w *agents) injected(p pod, annotations map[string]string) (*testnet.Pod, *parts.Agent) {
	w.t.Helper()
	n := w.network.Pod(w.t, p.ip)
	return n, parts.StartInjected(w.t, n, w.inject(p, annotations, false))
}

// inject makes a pod with these annotations what injection makes of it; cni says that a node agent writes its rules.
func (w *agents) inject(p pod, annotations map[string]string, cni bool) parts.Injected {
	w.t.Helper()
	given := &corev1.Pod{}
	if err := yaml.Unmarshal([]byte(p.yaml()), given); err != nil {
		w.t.Fatal(err)
	}
	given.Annotations = map[string]string{
		"prometheus.io/scrape": "true", "prometheus.io/port": "8080", "prometheus.io/path": "/m",
		"proxy.istio.io/config": fmt.Sprintf("{binaryPath: %q, concurrency: 1, terminationDrainDuration: 2s, "+
			"proxyMetadata: {ISTIO_META_DNS_CAPTURE: 'true'}}", parts.EnvoyBinary(w.t)),
	}
	maps.Copy(given.Annotations, annotations)
	values, mesh := injecttest.Settings(w.t)
	if cni {
		values = withCNI(w.t, values)
	}
	in, err := inject.New(inject.Settings{Values: values, Mesh: mesh,
		DefaultProxy: ingest.DefaultMesh().GetDefaultConfig()})
	if err != nil {
		w.t.Fatal(err)
	}
	made, err := in.Inject(inject.Request{Pod: given})
	if err != nil || made.Skipped != "" {
		w.t.Fatal(made.Skipped, err)
	}
	return parts.Injected{Pod: made.Pod, Roots: w.roots,
		Token: func() string { return w.cluster.Token(p.namespace, "default") }}
}

// TestInjectedPods runs pods as injection wrote them, each in a network namespace of its own: the init container's
// rules, the proxy's arguments, environment and files; one has its traffic captured by TPROXY. What they open and what
// arrives is captured, DNS queries too; between two of them there is mutual TLS, and without it nobody is let in; one
// that ends loses no request.
func TestInjectedPods(t *testing.T) {
	if !testnet.Users() {
		t.Skip("there is one user here: rules cannot tell a proxy from its application")
	}
	w := newAgents(t, secureService()+secureTwin().yaml()+strictMesh)
	w.objects.Apply(secureSlice(securePod(), secureTwin()))
	server, inbound := w.injected(securePod(), nil)
	parts.StartEcho(t, server, ":8080", "secure")
	other, twin := w.injected(secureTwin(), map[string]string{"sidecar.istio.io/interceptionMode": "TPROXY"})
	parts.StartEcho(t, other, ":8080", "secure")
	client, outbound := w.injected(clientDelta(), nil)
	for _, a := range []*parts.Agent{inbound, twin, outbound} {
		a.AwaitReady()
	}
	parts.Eventually(t, "a request is answered over mutual TLS", func() error { return asked(client.Client()) })

	t.Run("validation", w.validated)
	t.Run("names", func(t *testing.T) { injectedNames(t, client) })
	t.Run("interception", func(t *testing.T) { seesCallers(t, client.Client()) })
	t.Run("without a certificate", func(t *testing.T) {
		plain := w.network.Pod(t, outsider().ip).Client()
		parts.Eventually(t, "nobody is let in", func() error {
			if a, err := parts.Ask(plain, "http://"+securePod().ip+":8080/", secureHost); err == nil {
				return fmt.Errorf("answer %d %q", a.Status, a.Name)
			}
			return nil
		})
	})
	t.Run("metrics", func(t *testing.T) {
		page, err := inbound.Page(15020, "/stats/prometheus")
		if err != nil || !strings.Contains(page, "envoy_server_live{} 1") || !strings.Contains(page, "\nsecure\n") {
			t.Errorf("%v, %.300s", err, page)
		}
	})
	t.Run("IPv6", w.ipv6)
	t.Run("pilotd moves", func(t *testing.T) { w.moves(t, client) })
	t.Run("kills", func(t *testing.T) { w.kills(t, client, inbound, outbound) })
	t.Run("the end of a pod", func(t *testing.T) { w.endOf(t, twin, client) })
	t.Run("the end of a native sidecar", func(t *testing.T) { w.endOfNative(t, client, outbound) })
}

// withCNI returns values of the chart with which a node agent writes pods' rules.
func withCNI(t *testing.T, values string) string {
	t.Helper()
	all := map[string]any{}
	if err := json.Unmarshal([]byte(values), &all); err != nil {
		t.Fatal(err)
	}
	all["pilot"] = map[string]any{"cni": map[string]any{"enabled": true}}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// validated runs the container that a pod has in place of istio-init where a node agent writes rules: it fails with the
// code that node agents know where there are none.
func (w *agents) validated(t *testing.T) {
	p := pod{"validated", "shop", "10.244.4.9", "app: client"}
	n := w.network.Pod(t, p.ip)
	checked := w.inject(p, nil, true)
	args := func(of parts.Injected) []string { return of.Pod.Spec.InitContainers[0].Args }
	checked.Pod.Spec.InitContainers[0].Args = append(args(checked), "--probe-timeout=500ms")
	var exit *exec.ExitError
	if err := parts.RunInit(t, n, checked, "istio-validation"); !errors.As(err, &exit) || exit.ExitCode() != 126 {
		t.Error("without rules:", err)
	}
	checked.Pod.Spec.InitContainers[0].Args = append(args(checked), "--probe-timeout=10s")
	if err := parts.RunInit(t, n, w.inject(p, nil, false), "istio-init"); err != nil {
		t.Fatal(err)
	}
	if err := parts.RunInit(t, n, checked, "istio-validation"); err != nil {
		t.Error("with rules:", err)
	}
}

// seesCallers waits until both pods have answered: the application of one sees its proxy call, that of the other, whose
// interception is TPROXY, sees who calls its proxy.
func seesCallers(t *testing.T, client *http.Client) {
	seen := map[string]bool{}
	parts.Eventually(t, "both pods answer", func() error {
		a, err := parts.Ask(client, "http://"+secureVIP+":80/", secureHost)
		if err != nil {
			return err
		}
		seen[a.Header.Get("x-echo-from")] = true
		if !seen["127.0.0.6"] || !seen[clientDelta().ip] {
			return fmt.Errorf("the applications were called from %v", seen)
		}
		return nil
	})
	if len(seen) != 2 {
		t.Error("the applications were called from", seen)
	}
}

// injectedNames asks the pod's own resolver, whose queries are captured.
func injectedNames(t *testing.T, in *testnet.Pod) {
	for _, network := range []string{"udp", "tcp"} {
		r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return in.DialContext(ctx, network, testnet.Host+":53")
		}}
		if got, err := r.LookupHost(t.Context(), secureHost+"."); err != nil || len(got) != 1 || got[0] != secureVIP {
			t.Error(network, got, err)
		}
	}
}

// endOfNative ends a pod whose proxy is a native sidecar, as Kubernetes does, under load: the proxy drains by its hook,
// and is told to end when the application has ended, from when on there is nothing to wait for.
func (w *agents) endOfNative(t *testing.T, client *testnet.Pod, caller *parts.Agent) {
	p := pod{"secure-native", "shop", "10.244.4.3", "app: secure, security.istio.io/tlsMode: istio"}
	w.objects.Apply(p.yaml())
	n, native := w.injected(p, map[string]string{"sidecar.istio.io/nativeSidecar": "true"})
	parts.StartEcho(t, n, ":8080", "secure")
	l := startLoad(t, client)
	defer l.stop()
	serves := func(want bool) func() error {
		return func() error {
			page, err := caller.Request("GET", "clusters")
			if err == nil && strings.Contains(page, p.ip+":8080::cx_active::") != want {
				err = fmt.Errorf("%s is to be called: %v", p.ip, !want)
			}
			return err
		}
	}
	if n := l.fails(t, "a pod with a native sidecar ends", func() {
		w.objects.Apply(secureSlice(securePod(), p))
		parts.Eventually(t, "it is called", serves(true))
		l.goesOn(t)
		w.objects.Apply(secureSlice(securePod()))
		native.PreStop()
		parts.Eventually(t, "it is not called any more", serves(false))
		l.goesOn(t)
		begin := time.Now()
		native.Terminate()
		if err := native.Ended(); err != nil {
			t.Error(err)
		}
		if d := time.Since(begin); d > 2*time.Second {
			t.Error("it drained again, for", d)
		}
	}); n > 0 {
		t.Errorf("%d requests failed", n)
	}
}

// endOf ends a pod as Kubernetes does, under load: its endpoint goes, and its proxy is told to end.
func (w *agents) endOf(t *testing.T, ends *parts.Agent, client *testnet.Pod) {
	l := startLoad(t, client)
	defer l.stop()
	if n := l.fails(t, "a pod ends", func() {
		w.objects.Apply(secureSlice(securePod()))
		ends.Terminate()
		begin := time.Now()
		if err := ends.Ended(); err != nil {
			t.Error(err)
		}
		if d := time.Since(begin); d < 2*time.Second {
			t.Error("it drained for", d)
		}
	}); n > 0 {
		t.Errorf("%d requests failed", n)
	}
}

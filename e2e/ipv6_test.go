package e2e_test

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/e2e/testnet"
)

// Pods with addresses of IPv6 alone, and the addresses under which they are called.
const (
	callerVIP6, callerHost6 = "fd00:96::1", "caller.six.example"
	calledVIP6, calledHost6 = "fd00:96::2", "called.six.example"
)

func caller6() pod { return pod{"caller-six", "shop", "fd00:10:244::1:1", "app: caller-six"} }
func called6() pod { return pod{"called-six", "shop", "fd00:10:244::1:2", "app: called-six"} }

// service6 is a service whose one endpoint is a pod with a sidecar.
func service6(host, vip string, p pod) string {
	return p.yaml() + fmt.Sprintf(`
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %s, namespace: shop}
spec:
  hosts: [%s]
  addresses: ["%s"]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{name: http, number: 80, protocol: HTTP, targetPort: 8080}]
  endpoints: [{address: "%s", serviceAccount: default, labels: {%s, security.istio.io/tlsMode: istio}}]
`, p.name, host, vip, p.ip, p.labels)
}

// ipv6 has two injected pods with addresses of IPv6 alone call each other over mutual TLS, one captured by REDIRECT and
// one by TPROXY, and ask for names by IPv6.
func (w *agents) ipv6(t *testing.T) {
	if !w.network.IPv6 {
		t.Skip("this machine has no IPv6") // make e2e says so
	}
	testnet.StartRelay(t, net.JoinHostPort(testnet.Host6, "15012"), secureAt(0))
	w.objects.Apply(service6(callerHost6, callerVIP6, caller6()) + service6(calledHost6, calledVIP6, called6()))
	caller, first := w.injected(caller6(), nil)
	called, second := w.injected(called6(), map[string]string{"sidecar.istio.io/interceptionMode": "TPROXY"})
	parts.StartEcho(t, caller, ":8080", "caller")
	parts.StartEcho(t, called, ":8080", "called")
	first.AwaitReady()
	second.AwaitReady()
	for _, c := range []struct {
		from                  *testnet.Pod
		vip, host, name, sees string
	}{{caller, calledVIP6, calledHost6, "called", caller6().ip}, {called, callerVIP6, callerHost6, "caller", "::6"}} {
		parts.Eventually(t, c.name+" answers over mutual TLS", func() error {
			a, err := parts.Ask(c.from.Client(), "http://"+net.JoinHostPort(c.vip, "80")+"/", c.host)
			if err != nil {
				return err
			}
			if cert := a.Header.Get("x-echo-header-x-forwarded-client-cert"); a.Name != c.name || cert == "" ||
				a.Header.Get("x-echo-from") != c.sees {
				return fmt.Errorf("answer %d %q, certificate %q, called from %q: %.200s", a.Status, a.Name, cert,
					a.Header.Get("x-echo-from"), a.Body)
			}
			return nil
		})
	}
	for _, network := range []string{"udp", "tcp"} {
		r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return caller.DialContext(ctx, network, net.JoinHostPort(testnet.Host6, "53"))
		}}
		if got, err := r.LookupHost(t.Context(), calledHost6+"."); err != nil || len(got) != 1 || got[0] != calledVIP6 {
			t.Error(network, got, err)
		}
	}
}

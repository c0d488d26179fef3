package e2e_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/pilotd/pilotd/e2e/parts"
)

// overTLS has the clients of a tenant's service begin TLS, and check the certificate against a list of revoked ones if
// there is a path.
func (n tenant) overTLS(crl string) string {
	return fmt.Sprintf(`
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: app, namespace: tenant-%d}
spec:
  host: app
  trafficPolicy: {tls: {mode: SIMPLE, caCrl: %q}}
`, int(n), crl)
}

// A list of revoked certificates that a proxy does not have takes TLS from the cluster that names it, and from no other
// cluster with the same roots: Envoy refuses an update of a secret for all who share its subscription.
func TestListOfRevokedCertificatesThatIsNotThere(t *testing.T) {
	const good, bad = tenant(0), tenant(1)
	mesh := baseMesh() + good.overTLS("") + bad.overTLS("/no/such/file.pem")
	for _, n := range []tenant{good, bad} {
		mesh += n.service() + slice("app", fmt.Sprintf("tenant-%d", int(n)),
			"{name: http, port: 8080, protocol: TCP}", webV1())
	}
	w := newWorld(t, inDirectory, mesh)
	w.backends()
	v := w.visitor(clientDelta(), parts.Delta)
	// The backend speaks no TLS, so a request fails either way: with the roots when the backend answers in plain text.
	for n, roots := range map[tenant]bool{good: true, bad: false} {
		a, err := parts.Ask(v.client, "http://"+n.vip()+":80/", n.host())
		if err != nil || a.Status != http.StatusServiceUnavailable {
			t.Errorf("%s answers %d %q, %v", n.host(), a.Status, a.Body, err)
		}
		const waits = `client_ssl_socket_factory\.upstream_context_secrets_not_ready$`
		stats, err := v.envoy.Stats(`tenant-` + fmt.Sprint(int(n)) + `\..*` + waits)
		if err != nil || len(stats) == 0 {
			t.Fatalf("%s: %v %v", n.host(), stats, err)
		}
		for name, times := range stats {
			if (times == 0) != roots {
				t.Errorf("%s = %d, want none: %v", name, times, roots)
			}
		}
	}
}

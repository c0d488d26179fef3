package agent

import (
	"crypto/elliptic"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"github.com/pilotd/pilotd/agent/pod"
	"github.com/pilotd/pilotd/agent/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// read reads a pod with an environment, in an empty working directory.
func read(t *testing.T, env ...string) *pod.Pod {
	t.Helper()
	t.Chdir(t.TempDir())
	p, err := pod.Read(pod.Source{Kind: pod.Sidecar, Files: fstest.MapFS{},
		Addresses: []netip.Addr{netip.MustParseAddr("10.1.1.1")},
		Env:       pod.NewEnv(append([]string{"POD_NAME=web-1", "POD_NAMESPACE=shop", "SERVICE_ACCOUNT=web"}, env...))})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Where configuration and certificates come from, and by what their servers are verified, is as Istio's agent has it.
func TestServers(t *testing.T) {
	for name, c := range map[string]struct {
		env            []string
		xds, ca        string // address, name, roots
		plain, plainCA bool
	}{
		"usual": {xds: "istiod.istio-system.svc:15012 istiod.istio-system.svc " + rootFile,
			ca: "istiod.istio-system.svc:15012 istiod.istio-system.svc " + rootFile},
		"another authority": {env: []string{"CA_ADDR=ca.example:15010", "ISTIOD_SAN=san", "CA_ROOT_CA=/ca.pem"},
			xds: "istiod.istio-system.svc:15012 san " + rootFile, ca: "ca.example:15010 ca.example /ca.pem", plainCA: true},
		"a name": {env: []string{"ISTIOD_SAN=san", "XDS_ROOT_CA=SYSTEM"},
			xds: "istiod.istio-system.svc:15012 san SYSTEM", ca: "istiod.istio-system.svc:15012 san " + rootFile},
		"plain text": {env: []string{"PROXY_CONFIG={discoveryAddress: 'x:15010', controlPlaneAuthPolicy: NONE}"},
			xds: "x:15010 x " + rootFile, ca: "x:15010 x " + rootFile, plain: true, plainCA: true},
		"roots of the cluster": {env: []string{"PILOT_CERT_PROVIDER=kubernetes"},
			xds: "istiod.istio-system.svc:15012 istiod.istio-system.svc " + kubernetesRoots,
			ca:  "istiod.istio-system.svc:15012 istiod.istio-system.svc " + kubernetesRoots},
	} {
		p := read(t, c.env...)
		for what, of := range map[string]struct {
			got   upstream.Server
			want  string
			plain bool
		}{"xds": {discovery(p), c.xds, c.plain}, "ca": {authority(p), c.ca, c.plainCA}} {
			if got := of.got.Address + " " + of.got.Name + " " + of.got.Roots; got != of.want || of.got.Plaintext != of.plain {
				t.Errorf("%s, %s: %s %v, want %s %v", name, what, got, of.got.Plaintext, of.want, of.plain)
			}
		}
	}
}

// Headers of the environment go with calls of their kind; roots that are mounted with certificates verify servers.
func TestHeadersAndMountedRoots(t *testing.T) {
	p := read(t, "XDS_HEADER_X-A=1", "CA_HEADER_X-B=2", "ISTIO_META_CLUSTER_ID=c1", "PROV_CERT=certs")
	if h := discovery(p).Headers; h["x-a"] != "1" || h["x-b"] != "" || h["clusterid"] != "c1" {
		t.Error(h)
	}
	if h := authority(p).Headers; h["x-b"] != "2" || h["x-a"] != "" {
		t.Error(h)
	}
	for _, dir := range []string{"certs", "etc/certs"} { // the second goes first
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, upstream.RootFile)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := discovery(p).Roots; filepath.Clean(got) != path {
			t.Error("the roots are", got, "want", path)
		}
	}
}

// What is asked of a certificate is what the environment says, and what cannot be asked for is refused by its name.
func TestRequested(t *testing.T) {
	r, err := requested(read(t, "SECRET_TTL=1h", "TRUST_DOMAIN=td", "ECC_SIGNATURE_ALGORITHM=ECDSA", "ECC_CURVE=P384",
		"SECRET_GRACE_PERIOD_RATIO=0.3", "OUTPUT_CERTS=/out", "PKCS8_KEY=true"), slog.New(slog.DiscardHandler))
	if err != nil || r.Life != time.Hour || r.ID != "spiffe://td/ns/shop/sa/web" || r.Key.Curve != elliptic.P384() ||
		r.Grace != 0.3 || r.Output != "/out" || !r.Key.PKCS8 {
		t.Error(r, err)
	}
	for _, bad := range []string{"CA_PROVIDER=GoogleCA", "ECC_SIGNATURE_ALGORITHM=RSA", "WORKLOAD_RSA_KEY_SIZE=512",
		"SECRET_GRACE_PERIOD_RATIO=2", "SECRET_TTL=long"} {
		_, err := requested(read(t, bad), slog.New(slog.DiscardHandler))
		name, _, _ := strings.Cut(bad, "=")
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Error(bad, err)
		}
	}
}

// A socket that a process before has left is replaced; one that somebody serves is theirs.
func TestListenSocket(t *testing.T) {
	t.Chdir(t.TempDir())
	first, err := listenSocket("a/socket")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listenSocket("a/socket"); err == nil {
		t.Error("it was taken from who serves it")
	}
	first.Close()
	if err := os.WriteFile("a/socket", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	second, err := listenSocket("a/socket")
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
}

package agent

import (
	"cmp"
	"crypto/elliptic"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotd/pilotd/agent/pod"
	"github.com/pilotd/pilotd/agent/secret"
	"github.com/pilotd/pilotd/agent/upstream"
)

// plainPort is the port on which control planes serve plain text.
const plainPort = "15010"

// discovery returns the server of the pod's configuration.
func discovery(p *pod.Pod) upstream.Server {
	address := p.Config.DiscoveryAddress
	s := server(p, address, "XDS_HEADER_")
	s.Name = pod.ServerName(address, p.Env.Text("ISTIOD_SAN", ""))
	s.Plaintext = p.Config.ControlPlaneAuthPolicy == meshconfig.AuthenticationPolicy_NONE
	s.Roots = roots(p, "XDS_ROOT_CA")
	return s
}

// authority returns the server that signs the pod's certificates.
func authority(p *pod.Pod) upstream.Server {
	address := p.Env.Text("CA_ADDR", p.Config.DiscoveryAddress)
	s := server(p, address, "CA_HEADER_")
	san := ""
	if !p.Env.Has("CA_ADDR") {
		san = p.Env.Text("ISTIOD_SAN", "")
	}
	s.Name = pod.ServerName(address, san)
	_, port, _ := net.SplitHostPort(address)
	s.Plaintext = port == plainPort
	s.Roots = roots(p, "CA_ROOT_CA")
	return s
}

func server(p *pod.Pod, address, headers string) upstream.Server {
	_, more := p.Env.WithPrefix(headers)
	out := map[string]string{"clusterid": p.Env.Text("ISTIO_META_CLUSTER_ID", "Kubernetes")}
	for k, v := range more {
		out[strings.ToLower(k)] = v
	}
	return upstream.Server{Address: address, Token: tokenFile, Headers: out,
		Certificates: p.Env.Text("PROV_CERT", ""), Keepalive: p.Env.Duration("GRPC_KEEPALIVE_INTERVAL", 30*time.Second),
		KeepaliveTimeout: p.Env.Duration("GRPC_KEEPALIVE_TIMEOUT", 0)}
}

// roots returns the file with the roots that a control plane is verified by: that of the variable, or the one that is
// mounted with certificates, or that of the mesh.
func roots(p *pod.Pod, variable string) string {
	if path := p.Env.Text(variable, ""); path != "" {
		return path
	}
	dirs := certificateDirs()[:1]
	if dir := p.Env.Text("PROV_CERT", ""); dir != "" {
		dirs = append(dirs, dir)
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, upstream.RootFile)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	switch p.Env.Text("PILOT_CERT_PROVIDER", "istiod") {
	case "kubernetes":
		return kubernetesRoots
	case "none":
		return upstream.SystemRoots
	}
	return rootFile
}

// requested returns what requests the workload's certificate, by the pod's settings.
func requested(p *pod.Pod, log *slog.Logger) (*secret.Requested, error) {
	if ca := p.Env.Text("CA_PROVIDER", "Citadel"); ca != "Citadel" {
		return nil, fmt.Errorf("environment variable CA_PROVIDER=%q: want Citadel, the control plane's kind of authority", ca)
	}
	key, err := keyKind(p.Env)
	if err != nil {
		return nil, err
	}
	account := cmp.Or(p.ServiceAccount, "default")
	r := &secret.Requested{
		Server: authority(p), Key: key, Log: log.With("scope", "secret"),
		ID:     "spiffe://" + p.TrustDomain + "/ns/" + p.Namespace + "/sa/" + account,
		Life:   p.Env.Duration("SECRET_TTL", 24*time.Hour),
		Grace:  p.Env.Ratio("SECRET_GRACE_PERIOD_RATIO", 0.5),
		Jitter: p.Env.Ratio("SECRET_GRACE_PERIOD_RATIO_JITTER", 0.01),
		Signer: p.Env.Text("ISTIO_META_CERT_SIGNER", ""), Output: p.Env.Text("OUTPUT_CERTS", ""),
	}
	return r, p.Env.Err()
}

func keyKind(e pod.Env) (out secret.KeyKind, err error) {
	out.PKCS8 = e.Bool("PKCS8_KEY", false)
	out.Bits = e.Int("WORKLOAD_RSA_KEY_SIZE", 2048)
	if out.Bits < 2048 || out.Bits > 8192 {
		return out, fmt.Errorf("environment variable WORKLOAD_RSA_KEY_SIZE=%d: want 2048 to 8192", out.Bits)
	}
	switch algorithm := e.Text("ECC_SIGNATURE_ALGORITHM", ""); algorithm {
	case "":
		return out, nil
	case "ECDSA":
	default:
		return out, fmt.Errorf("environment variable ECC_SIGNATURE_ALGORITHM=%q: want ECDSA", algorithm)
	}
	switch curve := e.Text("ECC_CURVE", "P256"); curve {
	case "P256":
		out.Curve = elliptic.P256()
	case "P384":
		out.Curve = elliptic.P384()
	default:
		return out, fmt.Errorf("environment variable ECC_CURVE=%q: want P256 or P384", curve)
	}
	return out, nil
}

package agent

import "github.com/pilotd/pilotd/agent/pod"

// Paths relative to the working directory, which is the root directory in an image.
const (
	tokenFile       = "./var/run/secrets/tokens/istio-token"
	rootFile        = "./var/run/secrets/istio/root-cert.pem"
	kubernetesRoots = "./var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
	crlFile         = "./var/run/secrets/istio/crl/ca-crl.pem"
	sdsDir          = "./var/run/secrets/workload-spiffe-uds"
	dataDir         = "./var/lib/istio/data"
)

// sdsSocket returns the path of the socket at which Envoy gets certificates.
func sdsSocket(p *pod.Pod) string { return sdsDir + "/" + p.SecretSocket() }

// certificateDirs returns the directories in which a workload's certificate may be mounted. The first that has one is
// used.
func certificateDirs() []string {
	return []string{"./etc/certs", "./var/run/secrets/workload-spiffe-credentials"}
}

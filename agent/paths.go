package agent

// Where things are, from the working directory, which is the root in an image.
const (
	tokenFile       = "./var/run/secrets/tokens/istio-token"
	rootFile        = "./var/run/secrets/istio/root-cert.pem"
	kubernetesRoots = "./var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
	crlFile         = "./var/run/secrets/istio/crl/ca-crl.pem"
	sdsSocket       = "./var/run/secrets/workload-spiffe-uds/socket"
	dataDir         = "./var/lib/istio/data"
)

// certificateDirs are where a workload's certificate may be mounted; the first that has one counts.
func certificateDirs() []string {
	return []string{"./etc/certs", "./var/run/secrets/workload-spiffe-credentials"}
}

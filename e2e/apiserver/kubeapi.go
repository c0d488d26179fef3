package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// kubeAPI is one kube-apiserver.
type kubeAPI struct {
	// Immutable after newKubeAPI.
	dir   string
	etcd  string
	token string
	port  int
	audit bool
}

// newKubeAPI writes the keys and the token that the server reads at its start.
func newKubeAPI(dir, etcdURL string, audit bool) (*kubeAPI, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	secret := make([]byte, 16)
	if _, err := rand.Read(secret); err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	api := &kubeAPI{dir: dir, etcd: etcdURL, token: hex.EncodeToString(secret), port: port, audit: audit}
	line := api.token + `,admin,admin,"system:masters"` + "\n"
	if err := os.WriteFile(api.path("tokens.csv"), []byte(line), 0o600); err != nil {
		return nil, err
	}
	return api, api.writeServiceAccountKeys()
}

func (a *kubeAPI) path(name string) string { return filepath.Join(a.dir, name) }

func (a *kubeAPI) url() string { return fmt.Sprintf("https://127.0.0.1:%d", a.port) }

func (a *kubeAPI) writeServiceAccountKeys() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("service account key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return fmt.Errorf("service account key: %w", err)
	}
	private := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	if err := os.WriteFile(a.path("sa.key"), private, 0o600); err != nil {
		return err
	}
	return os.WriteFile(a.path("sa.pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o600)
}

// run serves until the process ends.
func (a *kubeAPI) run() error {
	cmd := app.NewAPIServerCommand()
	cmd.SilenceUsage = true
	args := []string{
		"--etcd-servers=" + a.etcd,
		"--service-cluster-ip-range=10.96.0.0/12",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + a.path("sa.pub"),
		"--service-account-signing-key-file=" + a.path("sa.key"),
		"--cert-dir=" + a.path("certs"),
		fmt.Sprintf("--secure-port=%d", a.port),
		"--bind-address=127.0.0.1",
		// Nobody connects there. It has to be given: a test network has no default route.
		"--advertise-address=10.244.0.1",
		"--authorization-mode=RBAC",
		"--token-auth-file=" + a.path("tokens.csv"),
		// Without a controller manager nobody makes the default service accounts.
		"--disable-admission-plugins=ServiceAccount",
		"--allow-privileged=true",
		"--v=0",
	}
	if a.audit {
		const policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"
		if err := os.WriteFile(a.path("audit.yaml"), []byte(policy), 0o600); err != nil {
			return err
		}
		args = append(args, "--audit-policy-file="+a.path("audit.yaml"), "--audit-log-path="+a.path("audit.log"))
	}
	cmd.SetArgs(args)
	if err := cmd.Execute(); err != nil {
		return fmt.Errorf("kube-apiserver: %w", err)
	}
	return nil
}

// announce waits for /readyz, then writes the kubeconfig and prints its path.
func (a *kubeAPI) announce(ctx context.Context) error {
	client, err := rest.HTTPClientFor(&rest.Config{BearerToken: a.token,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		return err
	}
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for !ready(ctx, client, a.url()+"/readyz") {
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
	}
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters["pilotd"] = &clientcmdapi.Cluster{Server: a.url(), InsecureSkipTLSVerify: true}
	cfg.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: a.token}
	cfg.Contexts["pilotd"] = &clientcmdapi.Context{Cluster: "pilotd", AuthInfo: "admin"}
	cfg.CurrentContext = "pilotd"
	if err := clientcmd.WriteToFile(*cfg, a.path("kubeconfig")); err != nil {
		return err
	}
	fmt.Println("ready", a.path("kubeconfig"))
	return nil
}

func ready(ctx context.Context, client *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

package e2e_test

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/e2e/testnet"
	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/inject"
	"github.com/pilotd/pilotd/inject/admission"
	"github.com/pilotd/pilotd/inject/injecttest"
	"github.com/pilotd/pilotd/transcript"
)

// TestWebhook has an API server ask the webhook about each of the recorded pods. What it stores is what istiod's
// injector would have had it store: the recorded result, sent to the same API server past the webhook, comes out equal.
func TestWebhook(t *testing.T) {
	c := parts.NewBareCluster(t, parts.StartAPIServer(t))
	hook := httptest.NewTLSServer(newWebhook(t))
	t.Cleanup(hook.Close)
	c.Apply(injectedNamespace + webhookConfiguration(hook, "/inject"))
	pods := podClient(t, c)
	parts.Eventually(t, "the webhook is asked", func() error {
		created, err := create(pods.Namespace("shop"), []byte(plainPod))
		if err == nil && len(created.Spec.Containers) != 2 {
			err = fmt.Errorf("the pod has %d containers", len(created.Spec.Containers))
		}
		return err
	})
	transcript.Each(t, "../inject/testdata/pods/*.txtar", func(t *testing.T, archive *transcript.File) {
		got, err := create(pods.Namespace("shop"), archive.Files[0].Data)
		if err != nil {
			t.Fatal(err)
		}
		recorded := strings.ReplaceAll(string(archive.Files[1].Data), "namespace: shop", "namespace: past")
		want, err := create(pods.Namespace("past"), []byte(recorded))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(withoutDefaults(t, want), withoutDefaults(t, got)); d != "" {
			t.Errorf("-recorded +injected\n%s", d)
		}
	})
	t.Run("refused", func(t *testing.T) {
		_, err := create(pods.Namespace("shop"), []byte(strings.Replace(plainPod, "labels: {",
			`annotations: {sidecar.istio.io/proxyCPU: lots}, labels: {`, 1)))
		if err == nil || !strings.Contains(err.Error(), `annotation sidecar.istio.io/proxyCPU="lots": expected a quantity`) {
			t.Errorf("got %v", err)
		}
	})
}

// TestWebhookOfPilotd has pilotd itself be the webhook: its certificate, its settings from ConfigMaps that change while
// it runs, and the path with cluster and network.
func TestWebhookOfPilotd(t *testing.T) {
	testnet.New(t)
	c := parts.NewCluster(t, parts.StartAPIServer(t))
	hook := httptest.NewUnstartedServer(nil)
	hook.StartTLS() // for its certificate alone, which is for 127.0.0.1
	cert, key := writeCertificate(t, hook)
	hook.Close()
	c.Apply(injectedNamespace + `
---
apiVersion: v1
kind: Namespace
metadata: {name: istio-system}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: istio, namespace: istio-system}
data: {mesh: "trustDomain: td.example"}
` + injectorConfig("first.example"))
	sources := c.Sources()
	sources.Flags = []string{"--httpsAddr=127.0.0.1:15017", "--tlsCertFile=" + cert, "--tlsKeyFile=" + key}
	parts.StartPilotd(t, sources)
	hook.URL = "https://127.0.0.1:15017"
	c.Apply(webhookConfiguration(hook, "/inject/cluster/c1/net/n1"))
	pods := podClient(t, c).Namespace("shop")
	for _, hub := range []string{"first.example", "second.example"} {
		c.Apply(injectorConfig(hub))
		parts.Eventually(t, "pods get images of "+hub, func() error {
			pod, err := create(pods, []byte(plainPod))
			if err != nil {
				return err
			}
			text := fmt.Sprint(pod.Spec.Containers, pod.Labels)
			for _, want := range []string{hub + "/proxyv2:", "td.example", "{ISTIO_META_CLUSTER_ID c1 ",
				"topology.istio.io/network:n1"} {
				if !strings.Contains(text, want) {
					return fmt.Errorf("want %s in %s", want, text)
				}
			}
			return nil
		})
	}
}

func injectorConfig(hub string) string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: ConfigMap
metadata: {name: istio-sidecar-injector, namespace: istio-system}
data: {config: "policy: enabled", values: "{global: {hub: %s}}"}
`, hub)
}

// writeCertificate writes the certificate of a test's server to files.
func writeCertificate(t *testing.T, of *httptest.Server) (cert, key string) {
	dir, pair := t.TempDir(), of.TLS.Certificates[0]
	private, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]},
		key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

const injectedNamespace = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {istio-injection: enabled}}
---
apiVersion: v1
kind: Namespace
metadata: {name: past}
`

const plainPod = `
apiVersion: v1
kind: Pod
metadata: {name: first, namespace: shop, labels: {app: web}}
spec: {containers: [{name: app, image: a}]}
`

func newWebhook(t *testing.T) http.Handler {
	values, mesh := injecttest.Settings(t)
	in, err := inject.New(inject.Settings{Values: values, Mesh: mesh,
		DefaultProxy: ingest.DefaultMesh().GetDefaultConfig()})
	if err != nil {
		t.Fatal(err)
	}
	return admission.New(admission.Options{Injector: func() *inject.Injector { return in }, Now: time.Now,
		Log: slog.Default()})
}

// webhookConfiguration has the API server ask hook about pods of labelled namespaces, once more where another webhook
// changes them afterwards. The second one is the same webhook, so that each pod is injected twice at least.
func webhookConfiguration(hook *httptest.Server, path string) string {
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: hook.Certificate().Raw}))
	entry := func(name string) string {
		return fmt.Sprintf(`
- name: %s.example.com
  clientConfig: {url: "%s%s", caBundle: %s}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  namespaceSelector: {matchLabels: {istio-injection: enabled}}
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  reinvocationPolicy: IfNeeded`, name, hook.URL, path, ca)
	}
	return `
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: injector}
webhooks:` + entry("first") + entry("second") + "\n"
}

func podClient(t *testing.T, c *parts.Cluster) dynamic.NamespaceableResourceInterface {
	config, err := clientcmd.BuildConfigFromFlags("", c.Sources().Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"})
}

// create has the API server go through all of a creation but for storing the pod. It has no plugin that gives pods
// their service account.
func create(in dynamic.ResourceInterface, text []byte) (*corev1.Pod, error) {
	object := map[string]any{}
	if err := yaml.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	spec := object["spec"].(map[string]any)
	if spec["serviceAccountName"] == nil {
		spec["serviceAccountName"] = "default"
	}
	if spec["dnsPolicy"] == "None" {
		spec["dnsConfig"] = map[string]any{"nameservers": []any{"192.0.2.53"}} // it is invalid without
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	stored, err := in.Create(ctx, &unstructured.Unstructured{Object: object},
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	return pod, runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, pod)
}

// withoutDefaults returns a pod without what differs for another reason than injection: who created it when and where.
// The recorded injections saw pods before the API server had filled in defaults; texts that quote the pod are compared
// by what they have in common.
func withoutDefaults(t *testing.T, pod *corev1.Pod) map[string]any {
	pod.ObjectMeta = metav1.ObjectMeta{Labels: pod.Labels, Annotations: pod.Annotations}
	_, own := pod.Annotations["proxy.istio.io/overrides"]
	if own {
		pod.Annotations["proxy.istio.io/overrides"] = "as the pod was"
	}
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for n := range list {
			if own { // defaults of the user's own container are the user's
				list[n].ImagePullPolicy, list[n].Resources.Requests = "", nil
			}
			for m := range list[n].Env {
				v := &list[n].Env[m]
				switch v.Name {
				case "ISTIO_META_OWNER":
					v.Value = strings.ReplaceAll(v.Value, "/past/", "/shop/")
				case "ISTIO_META_POD_PORTS":
					v.Value = strings.ReplaceAll(v.Value, `,"protocol":"TCP"`, "")
				case "ISTIO_KUBE_APP_PROBERS":
					v.Value = strings.NewReplacer(`,"timeoutSeconds":1`, "", `,"scheme":"HTTP"`, "").Replace(v.Value)
				}
			}
		}
	}
	return injecttest.Map(t, pod)
}

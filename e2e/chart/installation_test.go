package chart_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pilotd/pilotd/deploy/install"
	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/e2e/testnet"
	"github.com/pilotd/pilotd/ingest"
)

const (
	namespace = "istio-system"
	account   = "istiod"
)

// installation is the chart in a real API server.
type installation struct {
	t       *testing.T
	api     *parts.APIServer
	network *testnet.Network
	client  kubernetes.Interface
	// objects are those of the chart, by kind and name, as they were installed.
	objects map[string]*unstructured.Unstructured
}

// options are those of install and upgrade.
func (i *installation) options(sets ...string) install.Options {
	i.t.Helper()
	values, err := install.ReadValues(nil, sets)
	if err != nil {
		i.t.Fatal(err)
	}
	return install.Options{Kubeconfig: i.api.Kubeconfig, Namespace: namespace, Name: "pilotd", Values: values,
		Log: i.t.Logf}
}

// newInstallation installs the chart with values.
func newInstallation(t *testing.T, sets ...string) *installation {
	t.Helper()
	i := newCluster(t)
	text, err := install.Install(t.Context(), i.options(sets...))
	if err != nil {
		t.Fatal(err)
	}
	i.objects = decode(t, text)
	return i
}

// newCluster is an API server into which nothing is installed.
func newCluster(t *testing.T) *installation {
	t.Helper()
	i := &installation{t: t, network: testnet.New(t), api: parts.StartAuditedAPIServer(t)}
	config, err := clientcmd.BuildConfigFromFlags("", i.api.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	if i.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	return i
}

// decode reads a manifest.
func decode(t *testing.T, text string) map[string]*unstructured.Unstructured {
	t.Helper()
	out := map[string]*unstructured.Unstructured{}
	for d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 1<<16); ; {
		o := &unstructured.Unstructured{}
		if err := d.Decode(&o.Object); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		if len(o.Object) > 0 {
			out[o.GetKind()+" "+o.GetName()] = o
		}
	}
}

// gatewayAPI are CRDs for the kinds of the Gateway API that pilotd looks for, which the chart does not have.
func gatewayAPI() string {
	var out strings.Builder
	for _, k := range ingest.Kinds() {
		gv := k.GroupVersions()[0]
		if gv.Group != "gateway.networking.k8s.io" {
			continue
		}
		fmt.Fprintf(&out, `
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]s.%[2]s
  annotations: {api-approved.kubernetes.io: "unapproved, for a test"}
spec:
  group: %[2]s
  scope: Namespaced
  names: {plural: %[1]s, kind: %[3]s}
  versions:
  - {name: %[4]s, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, k.Plural, gv.Group, k.APIName(), gv.Version)
	}
	return out.String()
}

// kubeconfig is that of a service account of the chart, in a file.
func (i *installation) kubeconfig(account string) string {
	i.t.Helper()
	config, err := clientcmd.LoadFromFile(i.api.Kubeconfig)
	if err != nil {
		i.t.Fatal(err)
	}
	token := i.token(namespace, account, "")
	for _, user := range config.AuthInfos {
		*user = *user.DeepCopy()
		user.Token = token
	}
	file := filepath.Join(i.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		i.t.Fatal(err)
	}
	return file
}

// token is one of a service account, for the API server or for another audience.
func (i *installation) token(namespace, account, audience string) string {
	i.t.Helper()
	seconds := int64(3600)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if audience != "" {
		request.Spec.Audiences = []string{audience}
	}
	r, err := i.client.CoreV1().ServiceAccounts(namespace).CreateToken(i.t.Context(), account, request,
		metav1.CreateOptions{})
	if err != nil {
		i.t.Fatal(err)
	}
	return r.Status.Token
}

// start starts pilotd as the Deployment istiod says.
func (i *installation) start(env ...string) *parts.Pilotd {
	i.t.Helper()
	return i.startAs(account, env...)
}

// startAs starts pilotd as a Deployment says, but for addresses: each test has a machine for itself, but one only.
func (i *installation) startAs(deployment string, env ...string) *parts.Pilotd {
	i.t.Helper()
	d, err := i.client.AppsV1().Deployments(namespace).Get(i.t.Context(), deployment, metav1.GetOptions{})
	if err != nil {
		i.t.Fatal(err)
	}
	c := d.Spec.Template.Spec.Containers[0]
	if c.Args[0] != "discovery" {
		i.t.Fatalf("the first argument is %s", c.Args[0])
	}
	s := parts.Sources{Kubeconfig: i.kubeconfig(deployment), Flags: c.Args[1:]}
	s.Flags = append(s.Flags, "--secureGRPCAddr="+testnet.Host+":15012", "--httpsAddr="+testnet.Host+":15017",
		"--shutdownDuration=1s")
	for _, e := range c.Env {
		if e.ValueFrom != nil {
			e.Value = map[string]string{"metadata.name": deployment + "-0",
				"metadata.namespace": namespace}[e.ValueFrom.FieldRef.FieldPath]
		}
		s.Env = append(s.Env, e.Name+"="+e.Value)
	}
	s.Env = append(s.Env, env...)
	return parts.StartPilotd(i.t, s)
}

// serve has the Service istiod lead to the process, and returns its address.
func (i *installation) serve() string {
	i.t.Helper()
	return i.serveAs(account)
}

// serveAs has a Service lead to the process, and returns its address.
func (i *installation) serveAs(service string) string {
	i.t.Helper()
	s, err := i.client.CoreV1().Services(namespace).Get(i.t.Context(), service, metav1.GetOptions{})
	if err != nil {
		i.t.Fatal(err)
	}
	for _, p := range s.Spec.Ports {
		target := p.TargetPort.IntValue()
		i.network.Forward(i.t, fmt.Sprintf("%s:%d", s.Spec.ClusterIP, p.Port), fmt.Sprintf("%s:%d", testnet.Host, target))
	}
	return s.Spec.ClusterIP
}

// inNamespace makes a namespace with labels.
func (i *installation) inNamespace(name string, labels map[string]string) {
	i.t.Helper()
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if _, err := i.client.CoreV1().Namespaces().Create(i.t.Context(), n, metav1.CreateOptions{}); err != nil {
		i.t.Fatal(err)
	}
}

// create has the API server make a pod, but for storing it, and returns the names of its containers.
func (i *installation) create(namespace string, labels map[string]string) (string, error) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: labels},
		Spec: corev1.PodSpec{ServiceAccountName: "default", Containers: []corev1.Container{{Name: "app", Image: "a"}}}}
	made, err := i.client.CoreV1().Pods(namespace).Create(i.t.Context(), pod,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return "", err
	}
	var names []string
	for _, c := range slices.Concat(made.Spec.InitContainers, made.Spec.Containers) {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " "), nil
}

const injected = "app istio-init istio-proxy"

// injectsEventually waits until pods of a namespace come out as they should.
func (i *installation) injectsEventually(namespace string, labels map[string]string, want string) {
	i.t.Helper()
	parts.Eventually(i.t, fmt.Sprintf("a pod in %s with labels %v has the containers %s", namespace, labels, want),
		func() error {
			got, err := i.create(namespace, labels)
			if err == nil && got != want {
				err = fmt.Errorf("it has %s", got)
			}
			return err
		})
}

// caBundles are those of the webhooks of a configuration.
func (i *installation) caBundles(name string) []string {
	i.t.Helper()
	c, err := i.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(i.t.Context(), name,
		metav1.GetOptions{})
	if err != nil {
		i.t.Fatal(err)
	}
	out := map[string]bool{}
	for _, h := range c.Webhooks {
		out[string(h.ClientConfig.CABundle)] = true
	}
	return slices.Sorted(maps.Keys(out))
}

// secret is the Secret with the authority; nil when there is none.
func (i *installation) secret() *corev1.Secret {
	i.t.Helper()
	s, err := i.client.CoreV1().Secrets(namespace).Get(i.t.Context(), "istio-ca-secret", metav1.GetOptions{})
	if err != nil {
		i.t.Fatal(err)
	}
	return s
}

// aWhile is how long a call may take.
const aWhile = 20 * time.Second

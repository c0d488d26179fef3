package chart_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	securityv1 "istio.io/api/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pilotd/pilotd/ca"
	"github.com/pilotd/pilotd/deploy/install"
	"github.com/pilotd/pilotd/e2e/parts"
)

// TestChart installs the chart; pods are injected, certificates are signed; pilotd is refused nothing and has no right
// that it does not use; the chart is upgraded, rolled back and uninstalled.
func TestChart(t *testing.T) {
	i := newInstallation(t, "hub=registry.example", "revisionTags={prod}", "dashboards.enabled=true",
		"global.istiod.enableAnalysis=true")
	parts.NewBareCluster(t, i.api).Apply(gatewayAPI())
	i.inNamespace("shop", map[string]string{"istio-injection": "enabled"})
	parts.NewBareCluster(t, i.api).Apply(badProxyConfig)
	i.inNamespace("canary", map[string]string{"istio.io/rev": "prod"})
	i.inNamespace("plain", nil)
	service := i.serve()
	pilotd := i.start()
	t.Run("pods are injected", func(t *testing.T) { i.testInjection() })
	t.Run("the cluster is read", i.testSurroundings)
	t.Run("objects are validated", func(t *testing.T) { i.testValidation(t) })
	t.Run("certificates are signed", func(t *testing.T) { i.testCertificate(t, service) })
	t.Run("metrics exist", func(t *testing.T) { i.testMetrics(t, pilotd) })
	t.Run("what cannot be used is told", func(t *testing.T) { i.testFacts(t, pilotd) })
	pilotd.Stop()
	t.Run("pilotd is down", i.testDown)

	// Once more, with a root that is to be renewed, and with lists where there were streams of what there is.
	i.ageRoot()
	pilotd = i.start("KUBE_FEATURE_WatchListClient=false")
	parts.Eventually(t, "the root is renewed, and the webhooks have it", func() error {
		roots := string(i.secret().Data["root-cert.pem"])
		if strings.Count(roots, "BEGIN") != 2 {
			return fmt.Errorf("there are %d roots", strings.Count(roots, "BEGIN"))
		}
		for _, name := range []string{"istio-sidecar-injector", "istio-revision-tag-prod"} {
			if b := i.caBundles(name); !slices.Equal(b, []string{roots}) {
				return fmt.Errorf("%s has %q", name, b)
			}
		}
		return nil
	})
	i.injectsEventually("shop", nil, injected)
	t.Run("gateways get their secrets", func(t *testing.T) { i.testSecrets(t, service) })
	parts.Eventually(t, "every right is used", i.unused)
	pilotd.Stop()
	if refused := i.refused(); len(refused) > 0 {
		t.Errorf("refused: %v", refused)
	}
	t.Run("upgrade, rollback, uninstall", i.testLife)
}

func (i *installation) testInjection() {
	i.injectsEventually("shop", nil, injected)
	i.injectsEventually("canary", nil, injected)
	i.injectsEventually("plain", nil, "app")
	i.injectsEventually("plain", map[string]string{"sidecar.istio.io/inject": "true"}, injected)
	i.injectsEventually("plain", map[string]string{"istio.io/rev": "prod"}, injected)
	i.injectsEventually("shop", map[string]string{"sidecar.istio.io/inject": "false"}, "app")
}

// testValidation stores a good object and is kept from storing a bad one.
func (i *installation) testValidation(t *testing.T) {
	const route = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec: {hosts: [web], http: [{match: [{uri: {regex: "%s"}}], route: [{destination: {host: web}}]}]}
`
	cluster := parts.NewBareCluster(t, i.api)
	parts.Eventually(t, "a bad object is refused", func() error {
		err := cluster.TryApply(fmt.Sprintf(route, "(["))
		if err == nil || !strings.Contains(err.Error(), "spec.http[0].match[0].uri.regex: ") {
			return fmt.Errorf("it is answered with %v", err)
		}
		return nil
	})
	if err := cluster.TryApply(fmt.Sprintf(route, "/a.*")); err != nil {
		t.Error(err)
	}
}

// testDown has pods made while there is no pilotd: those that are not to be injected, and those of Kubernetes itself,
// are not kept from it.
func (i *installation) testDown(t *testing.T) {
	for _, ns := range []string{"plain", "kube-system", namespace} {
		if got, err := i.create(ns, nil); err != nil || got != "app" {
			t.Errorf("%s: %s, %v", ns, got, err)
		}
	}
	if _, err := i.create("shop", nil); err == nil {
		t.Error("a pod of the mesh was made without a proxy")
	}
}

// dial connects to the port where callers prove who they are.
func (i *installation) dial(t *testing.T, service string) *grpc.ClientConn {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(i.secret().Data["root-cert.pem"])
	conn, err := grpc.NewClient(service+":15012", grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
		RootCAs: roots, ServerName: "istiod." + namespace + ".svc"})))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// testCertificate is what an agent does first: it shows its token to the Service, and gets a certificate.
func (i *installation) testCertificate(t *testing.T, service string) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	if _, err := i.client.CoreV1().ServiceAccounts("shop").Create(t.Context(), account,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	conn := i.dial(t, service)
	defer conn.Close()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "authorization",
		"Bearer "+i.token("shop", "web", "istio-ca")), aWhile)
	defer cancel()
	answer, err := securityv1.NewIstioCertificateServiceClient(conn).CreateCertificate(ctx,
		&securityv1.IstioCertificateRequest{ValidityDuration: 3600,
			Csr: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr}))})
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(answer.CertChain[0]))
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil || len(cert.URIs) != 1 || cert.URIs[0].String() != "spiffe://cluster.local/ns/shop/sa/web" {
		t.Errorf("%v %v", cert.URIs, err)
	}
}

// testMetrics looks for every metric of the alerts and of the dashboard among those that pilotd has.
func (i *installation) testMetrics(t *testing.T, pilotd *parts.Pilotd) {
	page, err := pilotd.Debug("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := install.Render(i.options("hub=h", "dashboards.enabled=true", "prometheusRule.enabled=true"))
	if err != nil {
		t.Fatal(err)
	}
	objects := decode(t, text)
	shown := fmt.Sprint(objects["ConfigMap istiod-dashboards"].Object, objects["PrometheusRule istiod"].Object)
	named := map[string]bool{}
	metric := regexp.MustCompile(`\b(pilotd?|istio|citadel|sidecar|galley|process|go)_\w+`)
	for _, m := range metric.FindAllString(shown, -1) {
		named[m] = true
	}
	if len(named) < 15 {
		t.Fatalf("only %d metrics are named", len(named))
	}
	for m := range named {
		if !regexp.MustCompile(`(?m)^` + m + `[ {]`).MatchString(page) {
			t.Errorf("pilotd has no metric %s", m)
		}
	}
}

// ageRoot puts an authority in the place of the one that was made, which is to be renewed.
func (i *installation) ageRoot() {
	i.t.Helper()
	m, err := ca.SelfSigned(ca.Root{Organization: "cluster.local", Life: 100 * time.Hour}, time.Now().Add(-90*time.Hour))
	if err != nil {
		i.t.Fatal(err)
	}
	s := i.secret()
	s.Data = m.Data()
	if _, err := i.client.CoreV1().Secrets(namespace).Update(i.t.Context(), s, metav1.UpdateOptions{}); err != nil {
		i.t.Fatal(err)
	}
}

// refused are the requests of pilotd that the API server has refused for lack of rights.
func (i *installation) refused() (out []string) {
	i.t.Helper()
	for _, r := range i.requests() {
		if r.Annotations["authorization.k8s.io/decision"] != "allow" {
			out = append(out, r.Verb+" "+r.URI)
		}
	}
	return out
}

// requests are those of pilotd.
func (i *installation) requests() (out []parts.Request) {
	i.t.Helper()
	for _, r := range i.api.Requests(i.t) {
		if r.User.Username == "system:serviceaccount:"+namespace+":"+account {
			out = append(out, r)
		}
	}
	return out
}

// unused is an error that names the rights of the chart that pilotd has not used.
func (i *installation) unused() error {
	used := map[string]bool{}
	for _, r := range i.requests() {
		for _, name := range []string{"", r.Object.Name} {
			resource := strings.TrimSuffix(r.Object.Resource+"/"+r.Object.Subresource, "/")
			used[fmt.Sprintf("%s %s/%s %s", r.Verb, r.Object.APIGroup, resource, name)] = true
		}
	}
	var missing []string
	for _, o := range i.objects {
		if o.GetKind() != "Role" && o.GetKind() != "ClusterRole" {
			continue
		}
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			i.t.Fatal(err)
		}
		for _, right := range rights(role.Rules) {
			if !used[right] {
				missing = append(missing, right)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("rights that are not used:\n%s", strings.Join(missing, "\n"))
}

// rights are the single rights of rules, in the form that unused has.
func rights(rules []rbacv1.PolicyRule) (out []string) {
	for _, r := range rules {
		names := r.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, verb := range r.Verbs {
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					for _, name := range names {
						out = append(out, fmt.Sprintf("%s %s/%s %s", verb, group, resource, name))
					}
				}
			}
		}
	}
	return out
}

// testLife upgrades, rolls back and uninstalls.
func (i *installation) testLife(t *testing.T) {
	bundle := i.caBundles("istio-sidecar-injector")
	if _, err := install.Upgrade(t.Context(), i.options("autoscaleEnabled=false", "replicaCount=3")); err != nil {
		t.Fatal(err)
	}
	have := func(what string, replicas int32, scaled bool) {
		t.Helper()
		d, err := i.client.AppsV1().Deployments(namespace).Get(t.Context(), "istiod", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = i.client.AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(t.Context(), "istiod", metav1.GetOptions{})
		if *d.Spec.Replicas != replicas || apierrors.IsNotFound(err) == scaled {
			t.Errorf("%s: %d replicas; autoscaler: %v", what, *d.Spec.Replicas, err)
		}
		if image := d.Spec.Template.Spec.Containers[0].Image; image != "registry.example/pilotd:devel" {
			t.Errorf("%s: image %s", what, image)
		}
		if b := i.caBundles("istio-sidecar-injector"); !slices.Equal(b, bundle) {
			t.Errorf("%s: the caBundle has changed: %q", what, b)
		}
	}
	have("upgraded", 3, false)
	if err := install.Rollback(i.options()); err != nil {
		t.Fatal(err)
	}
	have("rolled back", 1, true) // where the autoscaler begins
	if _, err := install.Uninstall(i.options()); err != nil {
		t.Fatal(err)
	}
	i.testGone(t)
	if _, err := install.Uninstall(i.options()); err == nil || !strings.Contains(err.Error(), "is not installed") {
		t.Error(err)
	}
}

// testGone looks for what was installed.
func (i *installation) testGone(t *testing.T) {
	for name, o := range i.objects {
		request := i.client.CoreV1().RESTClient().Get().AbsPath(path(o.GetAPIVersion(), o.GetKind(), o.GetNamespace(),
			o.GetName()))
		if err := request.Do(t.Context()).Error(); !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, kept := range []string{"/api/v1/namespaces/istio-system/secrets/istio-ca-secret",
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/virtualservices.networking.istio.io"} {
		if err := i.client.CoreV1().RESTClient().Get().AbsPath(kept).Do(t.Context()).Error(); err != nil {
			t.Error(err)
		}
	}
}

// path is where an object of the chart is.
func path(version, kind, namespace, name string) string {
	root := "/apis/" + version
	if !strings.Contains(version, "/") {
		root = "/api/" + version
	}
	if namespace != "" {
		root += "/namespaces/" + namespace
	}
	plural := strings.ToLower(kind) + "s"
	if strings.HasSuffix(plural, "ys") {
		plural = strings.TrimSuffix(plural, "ys") + "ies"
	}
	return root + "/" + plural + "/" + name
}

package chart_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pilotd/pilotd/ca"
	"github.com/pilotd/pilotd/deploy/install"
	"github.com/pilotd/pilotd/e2e/parts"
)

// written returns the commands of a section of a page, without what is behind a #.
func written(t *testing.T, page, section string) (out []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", page))
	if err != nil {
		t.Fatal(err)
	}
	_, behind, ok := strings.Cut(string(text), "\n## "+section+"\n")
	if !ok {
		t.Fatalf("%s has no section %q", page, section)
	}
	behind, _, _ = strings.Cut(behind, "\n## ")
	for line := range strings.Lines(behind) {
		if command, ok := strings.CutPrefix(line, "    "); ok && strings.TrimSpace(line) != "" {
			command, _, _ = strings.Cut(command, " # ")
			out = append(out, strings.TrimSpace(command))
		}
	}
	return out
}

// run does what a command that is written says, and returns what it prints: pilotctl is run, what kubectl and helm
// would ask of the API server is asked.
func (i *installation) run(t *testing.T, command string) string {
	t.Helper()
	words := strings.Fields(command)
	switch {
	case words[0] == "pilotctl":
		program := os.Getenv("PILOTCTL")
		if program == "" {
			t.Fatal("PILOTCTL does not name a program: run the tests by `make e2e`")
		}
		cmd := exec.Command(program, words[1:]...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+i.api.Kubeconfig)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		return string(out)
	case strings.HasPrefix(command, "helm uninstall ") && len(words) == 5 && words[3] == "-n":
		o := i.options()
		o.Name, o.Namespace = words[2], words[4]
		if _, err := install.Uninstall(o); err != nil {
			t.Fatalf("%s: %v", command, err)
		}
	case strings.HasPrefix(command, "kubectl label namespace "):
		i.label(t, words[3], words[4:])
	case strings.HasPrefix(command, "kubectl rollout restart deployment -n ") && len(words) == 6:
		i.restart(t, words[5])
	case strings.HasPrefix(command, "kubectl get events -n ") && len(words) == 5:
		list, err := i.client.EventsV1().Events(words[4]).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		return fmt.Sprint(list.Items)
	default:
		t.Fatalf("%q is written, and nobody here knows how to try it", command)
	}
	return ""
}

// label sets labels of a namespace, and takes those away that end in a hyphen.
func (i *installation) label(t *testing.T, name string, labels []string) {
	t.Helper()
	n, err := i.client.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range labels {
		if k, v, ok := strings.Cut(l, "="); ok {
			metav1.SetMetaDataLabel(&n.ObjectMeta, k, v)
		} else {
			delete(n.Labels, strings.TrimSuffix(l, "-"))
		}
	}
	if _, err := i.client.CoreV1().Namespaces().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// restart changes the templates of all Deployments of a namespace, so that their pods are made anew.
func (i *installation) restart(t *testing.T, namespace string) {
	t.Helper()
	all, err := i.client.AppsV1().Deployments(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(all.Items) == 0 {
		t.Fatalf("%d Deployments, %v", len(all.Items), err)
	}
	for _, d := range all.Items {
		patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"%d"}}}}}`,
			d.Generation)
		if _, err := i.client.AppsV1().Deployments(namespace).Patch(t.Context(), d.Name, types.StrategicMergePatchType,
			[]byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// shop makes the namespace that the pages speak of, with a Deployment.
func (i *installation) shop(t *testing.T, labels map[string]string) {
	t.Helper()
	i.inNamespace("shop", labels)
	of := map[string]string{"app": "web"}
	if _, err := i.client.AppsV1().Deployments("shop").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: of}, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: of},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "a"}}}}}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestTenMinutes tries what README says that a platform team does first.
func TestTenMinutes(t *testing.T) {
	i := newCluster(t)
	i.shop(t, nil)
	for _, command := range written(t, "README.md", "Ten minutes in a cluster") {
		out := i.run(t, command)
		switch {
		case strings.Contains(command, "--dry-run"):
			if _, err := i.client.CoreV1().Services(namespace).Get(t.Context(), "istiod", metav1.GetOptions{}); err == nil ||
				!strings.Contains(out, "kind: Deployment") {
				t.Errorf("%s: %v, %.200s", command, err, out)
			}
		case strings.HasPrefix(command, "pilotctl install"):
			i.serve()
			i.start()
		case strings.HasPrefix(command, "kubectl rollout"):
			i.injectsEventually("shop", nil, injected)
		case strings.HasPrefix(command, "pilotctl uninstall"):
			if got, err := i.create("shop", nil); err != nil || got != "app" {
				t.Errorf("after %s a pod has %s, %v", command, got, err)
			}
		}
	}
}

// TestMigration tries what docs/operations.md says of the way from istiod to pilotd. What stands for istiod is a
// release of Helm's that is called so, with objects of istiod's names, and an authority; nobody runs it, so that a pod
// which is its to inject is not made.
func TestMigration(t *testing.T) {
	i := newCluster(t)
	i.shop(t, map[string]string{"istio-injection": "enabled"})
	istiod := i.options("hub=istio.example", "image=istio.example/pilot:1")
	istiod.Name = "istiod"
	text, err := install.Install(t.Context(), istiod)
	if err != nil {
		t.Fatal(err)
	}
	objects := decode(t, text)
	root, err := ca.SelfSigned(ca.Root{Organization: "cluster.local", Life: 10 * 365 * 24 * time.Hour}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.client.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{Type: "istio.io/ca-root",
		ObjectMeta: metav1.ObjectMeta{Name: "istio-ca-secret"}, Data: root.Data()}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	stays := func() {
		t.Helper()
		for name, o := range objects {
			raw, err := i.client.CoreV1().RESTClient().Get().AbsPath(path(o.GetAPIVersion(), o.GetKind(), o.GetNamespace(),
				o.GetName())).DoRaw(t.Context())
			if err != nil || !strings.Contains(string(raw), `"meta.helm.sh/release-name":"istiod"`) &&
				o.GetKind() != "CustomResourceDefinition" {
				t.Errorf("%s of istiod: %v", name, err)
			}
		}
	}
	steps := map[string]int{}
	for _, command := range written(t, "docs/operations.md", "From istiod, step by step") {
		i.run(t, command)
		switch {
		case strings.Contains(command, "--dry-run"):
		case strings.HasPrefix(command, "pilotctl install"):
			i.serveAs("pilotd-canary")
			i.startAs("pilotd-canary")
			stays()
			i.askedIstiod(t, true)
		case strings.Contains(command, "istio.io/rev=canary"):
			i.injectsEventually("shop", nil, injected)
			if got := i.caBundles("istio-sidecar-injector-canary"); !slices.Equal(got, []string{string(root.Roots)}) {
				t.Errorf("another authority is served: %q", got)
			}
			steps["there"]++
		case steps["gone"] == 0 && strings.Contains(command, "istio-injection=enabled"):
			i.askedIstiod(t, true)
			steps["back"]++
		case strings.HasPrefix(command, "helm uninstall"):
			i.askedIstiod(t, false)
			i.injectsEventually("shop", nil, injected)
			steps["gone"]++
		case strings.Contains(command, "istio-injection=enabled"):
			i.injectsEventually("shop", nil, injected)
			steps["default"]++
		}
	}
	if want := map[string]int{"there": 2, "back": 1, "gone": 1, "default": 1}; fmt.Sprint(steps) != fmt.Sprint(want) {
		t.Errorf("the steps were %v, want %v", steps, want)
	}
}

// askedIstiod waits until the API server asks istiod's Service about pods of a namespace that chooses the default
// revision, or does not any more.
func (i *installation) askedIstiod(t *testing.T, want bool) {
	t.Helper()
	if _, err := i.client.CoreV1().Namespaces().Get(t.Context(), "of-default", metav1.GetOptions{}); err != nil {
		i.inNamespace("of-default", map[string]string{"istio-injection": "enabled"})
	}
	parts.Eventually(t, fmt.Sprint("istiod is asked: ", want), func() error {
		_, err := i.create("of-default", nil)
		if asked := err != nil && strings.Contains(err.Error(), "/istiod"); asked != want {
			return fmt.Errorf("a pod was made with %v", err)
		}
		return nil
	})
}

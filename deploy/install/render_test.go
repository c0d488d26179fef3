package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/inject"
)

// objects are the rendered objects, by kind and name.
type objects map[string]*unstructured.Unstructured

// render renders the chart with values.
func render(t *testing.T, namespace string, sets ...string) objects {
	t.Helper()
	out, err := tryRender(namespace, sets...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func tryRender(namespace string, sets ...string) (objects, error) {
	values, err := ReadValues(nil, append([]string{"hub=registry.example"}, sets...))
	if err != nil {
		return nil, err
	}
	text, err := Render(Options{Name: "pilotd", Namespace: namespace, Values: values, SkipCRDs: true})
	if err != nil {
		return nil, err
	}
	return parse(text)
}

// parse parses a manifest.
func parse(text string) (objects, error) {
	out := objects{}
	for d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 1<<16); ; {
		o := &unstructured.Unstructured{}
		if err := d.Decode(&o.Object); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		key := o.GetKind() + " " + o.GetName()
		if len(o.Object) == 0 {
			continue
		}
		if out[key] != nil {
			return nil, fmt.Errorf("there are two of %s", key)
		}
		out[key] = o
	}
}

// text returns a string field of an object.
func text(o *unstructured.Unstructured, path ...string) string {
	v, _, _ := unstructured.NestedString(o.Object, path...)
	return v
}

// container returns the only container of a Deployment.
func (os objects) container(t *testing.T, deployment string) map[string]any {
	t.Helper()
	d := os["Deployment "+deployment]
	if d == nil {
		t.Fatalf("no Deployment %s among %v", deployment, slices.Sorted(maps.Keys(os)))
	}
	list, _, _ := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers")
	if len(list) != 1 {
		t.Fatal("containers:", len(list))
	}
	return list[0].(map[string]any)
}

// TestRender checks which objects are rendered for which values.
func TestRender(t *testing.T) {
	usual := []string{"ClusterRole istiod-istio-system", "ClusterRoleBinding istiod-istio-system", "ConfigMap istio",
		"ConfigMap istio-sidecar-injector", "Deployment istiod", "HorizontalPodAutoscaler istiod",
		"MutatingWebhookConfiguration istio-sidecar-injector", "Role istiod", "RoleBinding istiod", "Service istiod",
		"ServiceAccount istiod", "ValidatingWebhookConfiguration istio-validator-istio-system"}
	for _, c := range []struct {
		name, namespace string
		sets            []string
		more, less      []string
	}{
		{name: "the chart's own values"},
		{name: "replicas by hand", sets: []string{"autoscaleEnabled=false", "replicaCount=3"},
			more: []string{"PodDisruptionBudget istiod"}, less: []string{"HorizontalPodAutoscaler istiod"}},
		{name: "several at least", sets: []string{"autoscaleMin=2"}, more: []string{"PodDisruptionBudget istiod"}},
		{name: "no budget", sets: []string{"autoscaleMin=2", "global.defaultPodDisruptionBudget.enabled=false"}},
		{name: "a network policy", sets: []string{"global.networkPolicy.enabled=true"},
			more: []string{"NetworkPolicy istiod"}},
		{name: "tags", sets: []string{"revisionTags={prod,default}"},
			more: []string{"MutatingWebhookConfiguration istio-revision-tag-prod",
				"MutatingWebhookConfiguration istio-revision-tag-default"}},
		{name: "somebody else's webhooks and settings", sets: []string{"global.operatorManageWebhooks=true",
			"global.omitSidecarInjectorConfigMap=true", "configMap=false"},
			less: []string{"MutatingWebhookConfiguration istio-sidecar-injector", "ConfigMap istio-sidecar-injector",
				"ConfigMap istio", "ValidatingWebhookConfiguration istio-validator-istio-system"}},
		{name: "no validation", sets: []string{"global.configValidation=false"},
			less: []string{"ValidatingWebhookConfiguration istio-validator-istio-system"}},
		{name: "monitoring", sets: []string{"podMonitor.enabled=true", "prometheusRule.enabled=true",
			"dashboards.enabled=true"},
			more: []string{"PodMonitor istiod", "PrometheusRule istiod", "ConfigMap istiod-dashboards"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := slices.DeleteFunc(slices.Concat(usual, c.more), func(n string) bool { return slices.Contains(c.less, n) })
			slices.Sort(want)
			got := slices.Sorted(maps.Keys(render(t, "istio-system", c.sets...)))
			if !slices.Equal(got, want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
		})
	}
}

// TestNamesOfARevision checks that a revision with its own name, in its own namespace, shares no object name with
// istiod or with another revision.
func TestNamesOfARevision(t *testing.T) {
	os := render(t, "mesh", "name=pilotd", "revision=canary", "revisionTags={prod}")
	want := []string{"ClusterRole pilotd-canary-mesh", "ClusterRoleBinding pilotd-canary-mesh",
		"ConfigMap istio-canary", "ConfigMap istio-sidecar-injector-canary", "Deployment pilotd-canary",
		"HorizontalPodAutoscaler pilotd-canary", "MutatingWebhookConfiguration istio-revision-tag-prod-mesh",
		"MutatingWebhookConfiguration istio-sidecar-injector-canary-mesh", "Role pilotd-canary",
		"RoleBinding pilotd-canary", "Service pilotd-canary", "ServiceAccount pilotd-canary",
		"ValidatingWebhookConfiguration istio-validator-canary-mesh"}
	if got := slices.Sorted(maps.Keys(os)); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if m := text(os["ConfigMap istio-canary"], "data", "mesh"); !strings.Contains(m,
		"discoveryAddress: pilotd-canary.mesh.svc:15012") || !strings.Contains(m, "rootNamespace: mesh") {
		t.Error(m)
	}
	if env := fmt.Sprint(os.container(t, "pilotd-canary")["env"]); !strings.Contains(env,
		"map[name:ISTIOD_CUSTOM_HOST value:pilotd-canary.mesh.svc]") || !strings.Contains(env, "name:REVISION value:canary") {
		t.Error(env)
	}
	// Namespaces that are selected by istio-injection alone belong to the default revision.
	for _, name := range []string{"istio-sidecar-injector-canary-mesh", "istio-revision-tag-prod-mesh"} {
		if n := len(hooks(t, os, name)); n != 2 {
			t.Errorf("%s has %d webhooks", name, n)
		}
	}
	for ns, o := range os {
		if strings.HasPrefix(ns, "Cluster") || strings.HasPrefix(ns, "Mutating") ||
			strings.HasPrefix(ns, "Validating") {
			continue
		}
		if o.GetNamespace() != "mesh" {
			t.Errorf("%s is in namespace %q", ns, o.GetNamespace())
		}
	}
}

// hooks returns the webhooks of a configuration.
func hooks(t *testing.T, os objects, name string) []any {
	t.Helper()
	c := os["MutatingWebhookConfiguration "+name]
	if c == nil {
		t.Fatal("no", name)
	}
	list, _, _ := unstructured.NestedSlice(c.Object, "webhooks")
	return list
}

// TestImage checks how the image reference is put together.
func TestImage(t *testing.T) {
	for _, c := range []struct {
		sets []string
		want string
	}{
		{nil, "registry.example/pilotd:devel"},
		{[]string{"tag=1.2"}, "registry.example/pilotd:1.2"},
		{[]string{"image=other.example/me/pilotd@sha256:ab"}, "other.example/me/pilotd@sha256:ab"},
	} {
		if got := render(t, "istio-system", c.sets...).container(t, "istiod")["image"]; got != c.want {
			t.Errorf("%v: %v, want %s", c.sets, got, c.want)
		}
	}
}

// TestRefusedValues checks that invalid values are refused, with their names.
func TestRefusedValues(t *testing.T) {
	for _, c := range []struct{ set, want string }{
		{"hub=", "hub: expected the registry"},
		{"traceSampling=1", "traceSampling"},
		{"global.remotePilotAddress=x", "remotePilotAddress"},
		{"replicaCount=0", "replicaCount"},
		{"autoscaleMin=many", "autoscaleMin"},
		{"revision=Not_A_Label", "revision"},
		{"shutdownDuration=soon", "shutdownDuration"},
		{"global.proxy.autoInject=sometimes", "autoInject"},
	} {
		if _, err := tryRender("istio-system", c.set); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.set, err)
		}
	}
}

// TestSettingsAreRead checks that pilotd's own code can read the rendered ConfigMaps, with default and other values.
func TestSettingsAreRead(t *testing.T) {
	for _, sets := range [][]string{nil, {"meshConfig.trustDomain=td.example", "global.hub=other.example/istio",
		"sidecarInjectorWebhook.neverInjectSelector[0].matchLabels.a=b", "sidecarInjectorWebhook.templates.mine=spec: {}",
		"sidecarInjectorWebhook.defaultTemplates={sidecar,mine}", "sidecarInjectorWebhook.injectedAnnotations.x=y",
		"env.PILOT_X=1", "cni.enabled=true", "global.proxy.autoInject=disabled"}} {
		os := render(t, "istio-system", sets...)
		mesh, err := ingest.ParseMesh(text(os["ConfigMap istio"], "data", "mesh"))
		if err != nil {
			t.Fatal(err)
		}
		injector := os["ConfigMap istio-sidecar-injector"]
		config, err := inject.ReadConfig(text(injector, "data", "config"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := inject.New(inject.Settings{Config: config, Values: text(injector, "data", "values"), Mesh: mesh,
			DefaultProxy: ingest.DefaultMesh().GetDefaultConfig()}); err != nil {
			t.Error(err)
		}
		if sets == nil {
			continue
		}
		if mesh.TrustDomain != "td.example" || config.Policy != inject.PolicyDisabled || len(config.DefaultTemplates) != 2 ||
			config.Templates["mine"] == "" || len(config.NeverInjectSelector) != 1 {
			t.Errorf("%v\n%+v", mesh, config)
		}
	}
}

// TestRightsOfKinds checks that the rights to read match the kinds that pilotd reads.
func TestRightsOfKinds(t *testing.T) {
	have := map[string]bool{}
	rules, _, _ := unstructured.NestedSlice(render(t, "istio-system")["ClusterRole istiod-istio-system"].Object, "rules")
	for _, r := range rules {
		rule := r.(map[string]any)
		if fmt.Sprint(rule["verbs"]) != "[list watch]" || rule["resourceNames"] != nil {
			continue
		}
		for _, g := range rule["apiGroups"].([]any) {
			for _, r := range rule["resources"].([]any) {
				have[fmt.Sprintf("%s/%s", g, r)] = true
			}
		}
	}
	for _, k := range ingest.Kinds() {
		group := k.GroupVersions()[0].Group
		if k.Plural == "configmaps" || k.Aside { // the mesh configuration is read by name; Aside kinds come from files only
			continue
		}
		name := group + "/" + k.Plural
		if !have[name] {
			t.Errorf("no right to read %s", name)
		}
		delete(have, name)
	}
	for _, other := range []string{"apiextensions.k8s.io/customresourcedefinitions",
		"admissionregistration.k8s.io/mutatingwebhookconfigurations",
		"admissionregistration.k8s.io/validatingwebhookconfigurations"} {
		delete(have, other)
	}
	if len(have) > 0 {
		t.Errorf("rights that nobody needs: %v", have)
	}
}

// TestEqualTexts checks that equal values render to equal text.
func TestEqualTexts(t *testing.T) {
	values, err := ReadValues(nil, []string{"hub=h", "env.A=1", "env.B=2", "revisionTags={a,b}"})
	if err != nil {
		t.Fatal(err)
	}
	var texts [2][]byte
	for i := range texts {
		text, err := Render(Options{Name: "pilotd", Namespace: "istio-system", Values: values})
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = []byte(text)
	}
	if !bytes.Equal(texts[0], texts[1]) {
		t.Error("the texts differ")
	}
}

// TestValuesAreDocumented checks that each value of the first level, and each of global, is on the documentation page.
func TestValuesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	c, err := load("")
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Collect(maps.Keys(c.Values))
	for name := range c.Values["global"].(map[string]any) {
		names = append(names, "global."+name)
	}
	for _, name := range names {
		if name != "global" && !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/operations.md does not say what %s means", name)
		}
	}
}

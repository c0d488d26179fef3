package inject

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	meshconfig "istio.io/api/mesh/v1alpha1"
)

// Settings are what an Injector is made from.
type Settings struct {
	// Config and Values are the keys of those names of the injector's ConfigMap.
	Config Config
	Values string
	Mesh   *meshconfig.MeshConfig
	// DefaultProxy is what agents assume of a ProxyConfig; what is equal to it is not written into pods.
	DefaultProxy *meshconfig.ProxyConfig
	// ProxyConfigs are the ProxyConfig objects of the mesh.
	ProxyConfigs []ProxyConfig
	// Revision is the control plane's; "default" when empty.
	Revision string
	// NativeSidecars says whether proxies run as native sidecars where a pod does not say.
	NativeSidecars bool
	// CompliancePolicy is handed to agents.
	CompliancePolicy string
	// Env is what the function "env" of custom templates looks names up in.
	Env map[string]string
}

// Config is the key "config" of the injector's ConfigMap.
type Config struct {
	// Policy is "enabled" or "disabled": what happens to a pod that says nothing.
	Policy string `json:"policy"`
	// DefaultTemplates are the templates of a pod that names none: "sidecar" when there are none.
	DefaultTemplates []string `json:"defaultTemplates"`
	// Aliases are names for several templates.
	Aliases map[string][]string `json:"aliases"`
	// Templates are custom templates by name. One that is called like a built-in one takes its place.
	Templates map[string]string `json:"templates"`
	// NeverInjectSelector and AlwaysInjectSelector decide for pods that say nothing; the first goes first.
	NeverInjectSelector  []metav1.LabelSelector `json:"neverInjectSelector"`
	AlwaysInjectSelector []metav1.LabelSelector `json:"alwaysInjectSelector"`
	// InjectedAnnotations are added to each pod that is injected.
	InjectedAnnotations map[string]string `json:"injectedAnnotations"`
}

// Policies.
const (
	PolicyEnabled  = "enabled"
	PolicyDisabled = "disabled"
)

// ReadConfig reads the key "config" of the injector's ConfigMap. An empty text is what the chart has by default.
func ReadConfig(text string) (Config, error) {
	c := Config{Policy: PolicyEnabled}
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		return c, fmt.Errorf("injector's config: %s", oneLine(err))
	}
	if c.Policy != PolicyEnabled && c.Policy != PolicyDisabled {
		return c, fmt.Errorf("injector's config: policy: expected enabled or disabled, got %q", c.Policy)
	}
	return c, nil
}

// templates are the names of the templates that a list of names and aliases stands for.
func (c *Config) resolve(names []string) []string {
	var out []string
	for _, n := range names {
		if of, ok := c.Aliases[n]; ok {
			out = append(out, of...)
		} else {
			out = append(out, n)
		}
	}
	return slices.Compact(out)
}

func selectors(field string, of []metav1.LabelSelector) ([]labels.Selector, error) {
	var out []labels.Selector
	for i := range of {
		s, err := metav1.LabelSelectorAsSelector(&of[i])
		if err != nil {
			return nil, fmt.Errorf("injector's config: %s[%d]: %w", field, i, err)
		}
		if !s.Empty() {
			out = append(out, s)
		}
	}
	return out, nil
}

// oneLine returns an error's text without line breaks.
func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}

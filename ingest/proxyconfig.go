package ingest

import (
	"maps"
	"regexp"
	"slices"

	networking "istio.io/api/networking/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ReadProxyConfig reads the specification of a ProxyConfig object, in JSON. It returns why the object cannot come into
// force, nil if it can. Who injects pods calls it, and who is asked before an object is stored: no Store reads the
// kind.
func ReadProxyConfig(text []byte) (*networking.ProxyConfig, *Rejection) {
	spec := &networking.ProxyConfig{}
	if len(text) > 0 {
		if err := spec.UnmarshalJSON(text); err != nil {
			return nil, &Rejection{Field: "spec", Reason: oneLine(err)}
		}
	}
	c := &check{}
	c.policySelector("spec.selector.matchLabels", spec.GetSelector().GetMatchLabels())
	if n := spec.GetConcurrency(); n != nil {
		c.that(n.GetValue() >= 0, "spec.concurrency", "expected at least 0, got %d", n.GetValue())
	}
	// A pod with such a variable or image is one that no API server stores, or no kubelet starts.
	const variables = "spec.environmentVariables"
	for _, name := range slices.Sorted(maps.Keys(spec.GetEnvironmentVariables())) {
		c.that(len(validation.IsRelaxedEnvVarName(name)) == 0, member(variables, name),
			"expected a variable's name: printable ASCII characters without =")
	}
	imageType := spec.GetImage().GetImageType()
	c.that(regexp.MustCompile(`^[\w.-]*$`).MatchString(imageType), "spec.image.imageType",
		"expected the end of an image's tag, such as distroless, got %q", imageType)
	if c.first != nil {
		return nil, &Rejection{Field: c.first.field, Reason: c.first.reason}
	}
	return spec, nil
}

package inject

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"istio.io/api/annotation"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1beta1"
)

// ProxyConfig is a ProxyConfig object.
type ProxyConfig struct {
	Namespace, Name string
	Created         time.Time
	Spec            *networking.ProxyConfig
}

// proxyConfig is the ProxyConfig in force for a pod: the mesh's, then objects of the root namespace, of the pod's, and
// of its labels, then its own annotation. What is more particular wins, field by field; proxyMetadata by name.
func (in *Injector) proxyConfig(pod *corev1.Pod) (*meshconfig.ProxyConfig, error) {
	out := proto.CloneOf(in.settings.Mesh.GetDefaultConfig())
	if out == nil {
		out = &meshconfig.ProxyConfig{}
	}
	for rank := range 3 {
		if o := in.proxyConfigAt(rank, pod); o != nil {
			layObject(out, o.Spec)
		}
	}
	text, ok := pod.Annotations[annotation.ProxyConfig.Name]
	if !ok {
		return out, nil
	}
	return out, layAnnotation(out, text)
}

// proxyConfigAt is the oldest object of a rank that applies to a pod: 0 is the mesh's, 1 the namespace's, 2 its own.
func (in *Injector) proxyConfigAt(rank int, pod *corev1.Pod) *ProxyConfig {
	var best *ProxyConfig
	for i := range in.settings.ProxyConfigs {
		o := &in.settings.ProxyConfigs[i]
		selects := o.Spec.GetSelector().GetMatchLabels()
		fits := false
		switch rank {
		case 0:
			fits = o.Namespace == cmp.Or(in.settings.Mesh.GetRootNamespace(), "istio-system") && len(selects) == 0
		case 1:
			fits = o.Namespace == pod.Namespace && len(selects) == 0
		default:
			fits = o.Namespace == pod.Namespace && len(selects) > 0 && subset(selects, pod.Labels)
		}
		if fits && (best == nil || o.Created.Before(best.Created) || o.Created.Equal(best.Created) && o.Name < best.Name) {
			best = o
		}
	}
	return best
}

func subset(of, in map[string]string) bool {
	for k, v := range of {
		if got, ok := in[k]; !ok || got != v {
			return false
		}
	}
	return true
}

func layObject(onto *meshconfig.ProxyConfig, spec *networking.ProxyConfig) {
	if spec.GetConcurrency() != nil {
		onto.Concurrency = spec.GetConcurrency()
	}
	if spec.GetImage() != nil {
		onto.Image = spec.GetImage()
	}
	onto.ProxyMetadata = mergedMap(onto.ProxyMetadata, spec.GetEnvironmentVariables())
}

// layAnnotation sets the fields that a text names, each as a whole.
func layAnnotation(onto *meshconfig.ProxyConfig, text string) error {
	given, read, err := readProxyConfig(text)
	if err != nil {
		return fmt.Errorf("annotation %s: %w", annotation.ProxyConfig.Name, err)
	}
	metadata := mergedMap(onto.ProxyMetadata, read.ProxyMetadata)
	to, from := onto.ProtoReflect(), read.ProtoReflect()
	for _, name := range slices.Sorted(maps.Keys(given)) {
		field := to.Descriptor().Fields().ByJSONName(name)
		if field == nil {
			if field = to.Descriptor().Fields().ByTextName(name); field == nil {
				continue // the reader has refused it
			}
		}
		if from.Has(field) {
			to.Set(field, from.Get(field))
		} else {
			to.Clear(field)
		}
	}
	onto.ProxyMetadata = metadata
	return nil
}

// readProxyConfig reads a ProxyConfig as YAML: which fields it names, and what they are.
func readProxyConfig(text string) (map[string]json.RawMessage, *meshconfig.ProxyConfig, error) {
	const expected = "expected a ProxyConfig as YAML or JSON: %s"
	given, read := map[string]json.RawMessage{}, &meshconfig.ProxyConfig{}
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, nil, fmt.Errorf(expected, oneLine(err))
	}
	if string(asJSON) == "null" {
		return given, read, nil
	}
	if err := json.Unmarshal(asJSON, &given); err != nil {
		return nil, nil, fmt.Errorf(expected, oneLine(err))
	}
	if err := protojson.Unmarshal(asJSON, read); err != nil {
		return nil, nil, fmt.Errorf(expected, oneLine(err))
	}
	return given, read, nil
}

// mergedMap is two maps, of which the second wins.
func mergedMap(base, over map[string]string) map[string]string {
	if len(over) == 0 {
		return base
	}
	out := make(map[string]string, len(base)+len(over))
	maps.Copy(out, base)
	maps.Copy(out, over)
	return out
}

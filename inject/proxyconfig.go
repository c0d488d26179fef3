package inject

import (
	"cmp"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"

	"istio.io/api/annotation"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1beta1"

	"github.com/pilotd/pilotd/proxyconfig"
)

// ProxyConfig is a ProxyConfig object.
type ProxyConfig struct {
	Namespace, Name string
	Created         time.Time
	Spec            *networking.ProxyConfig
}

// proxyConfig returns the ProxyConfig in force for a pod: the mesh's, then objects of the root namespace, of the pod's,
// and of its labels, then its own annotation. What is more particular wins, field by field; proxyMetadata by name.
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
	if err := proxyconfig.Lay(out, text); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", annotation.ProxyConfig.Name, err)
	}
	return out, nil
}

// proxyConfigAt returns the oldest object of a rank that applies to a pod: 0 is the mesh's, 1 the namespace's, 2 its
// own.
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
	onto.ProxyMetadata = proxyconfig.MergedMap(onto.ProxyMetadata, spec.GetEnvironmentVariables())
}

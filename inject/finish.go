package inject

import (
	"maps"

	"istio.io/api/annotation"
	"istio.io/api/label"
)

// finish changes what depends on the merged pod as a whole.
func (i *injection) finish() error {
	if i.pod.Annotations == nil {
		i.pod.Annotations = map[string]string{}
	}
	if i.pod.Labels == nil {
		i.pod.Labels = map[string]string{}
	}
	setEnv(proxyOf(i.pod), i.env)
	if err := i.mergeMetrics(); err != nil {
		return err
	}
	if err := i.rewriteProbes(); err != nil {
		return err
	}
	if n, ok := i.env[envNetwork]; ok {
		i.pod.Labels[label.TopologyNetwork.Name] = n
	}
	text, err := i.status()
	if err != nil {
		return err
	}
	i.pod.Annotations[annotation.SidecarStatus.Name] = text
	maps.Copy(i.pod.Annotations, i.settings.Config.InjectedAnnotations)
	if i.before != nil {
		i.keepOrder()
	}
	i.order()
	return nil
}

package inject

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pilotd/pilotd/inject/overlay"
)

// envPorts has the ports that the pod's containers declare.
const envPorts = "ISTIO_META_POD_PORTS"

// keepPorts keeps what an earlier injection wrote as the pod's ports, where nothing but their order and the proxy's own
// could have changed: nobody has written down where the user's own proxy container stood before it was moved.
func (i *injection) keepPorts() {
	was, is := variable(proxyOf(i.original), envPorts), variable(proxyOf(i.pod), envPorts)
	if was == nil || is == nil || was.Value == is.Value {
		return
	}
	old, ok := countPorts(was.Value)
	if !ok {
		return
	}
	least, most := map[corev1.ContainerPort]int{}, map[corev1.ContainerPort]int{}
	for _, c := range slices.Concat(i.data.Spec.Containers, i.data.Spec.InitContainers) {
		for _, p := range c.Ports {
			switch {
			case c.Name == overlay.ProxyContainer:
				most[p]++
			case find(i.data.Spec.Containers, c.Name) != nil:
				least[p], most[p] = least[p]+1, most[p]+1
			}
		}
	}
	if within(least, old) && within(old, most) {
		is.Value = was.Value
	}
}

func variable(c *corev1.Container, name string) *corev1.EnvVar {
	if c == nil {
		return nil
	}
	for n := range c.Env {
		if c.Env[n].Name == name {
			return &c.Env[n]
		}
	}
	return nil
}

func countPorts(text string) (map[corev1.ContainerPort]int, bool) {
	var ports []corev1.ContainerPort
	if err := json.Unmarshal([]byte(text), &ports); err != nil {
		return nil, false
	}
	out := map[corev1.ContainerPort]int{}
	for _, p := range ports {
		out[p]++
	}
	return out, true
}

// within tells whether each port stands in b at least as often as in a.
func within(a, b map[corev1.ContainerPort]int) bool {
	for p, n := range a {
		if n > b[p] {
			return false
		}
	}
	return true
}

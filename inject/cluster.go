package inject

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"istio.io/api/label"

	"github.com/pilotd/pilotd/inject/overlay"
)

const (
	envCluster = "ISTIO_META_CLUSTER_ID"
	envNetwork = "ISTIO_META_NETWORK"
)

// clusterEnv returns the variables that say where the pod is: of the values, then of the request, then its own label.
func (i *injection) clusterEnv() map[string]string {
	out := map[string]string{}
	if c := i.chart.Global.MultiCluster.ClusterName; c != "" {
		out[envCluster] = c
	}
	if n := i.chart.Global.Network; n != "" {
		out[envNetwork] = n
	}
	for k, v := range i.req.Env {
		if v != "" || k != envCluster && k != envNetwork {
			out[k] = v
		}
	}
	if n, ok := i.original.Labels[label.TopologyNetwork.Name]; ok && n != "" {
		out[envNetwork] = n
	}
	return out
}

// setEnv gives the proxy variables, at the end of its own.
func setEnv(proxy *corev1.Container, env map[string]string) {
	if proxy == nil || len(env) == 0 {
		return
	}
	proxy.Env = slices.DeleteFunc(proxy.Env, func(v corev1.EnvVar) bool {
		_, replaced := env[v.Name]
		return replaced
	})
	for _, name := range slices.Sorted(maps.Keys(env)) {
		proxy.Env = append(proxy.Env, corev1.EnvVar{Name: name, Value: env[name]})
	}
}

// proxyOf returns the proxy's container of a pod, or nil.
func proxyOf(pod *corev1.Pod) *corev1.Container {
	if c := find(pod.Spec.Containers, overlay.ProxyContainer); c != nil {
		return c
	}
	return find(pod.Spec.InitContainers, overlay.ProxyContainer)
}

// PathEnv reads the variables that the path of a webhook's URL ends in: /inject/cluster/C/net/N, pairs of a name and a
// value. Other names are those of variables. A name without a value is left out; "--slash--" in a value is a slash. The
// older form /inject/:ENV:cluster=C:ENV:net=N is read too.
func PathEnv(path string) map[string]string {
	out := map[string]string{}
	path = strings.TrimPrefix(strings.TrimSuffix(path, "/"), "/")
	_, pairs, ok := strings.Cut(path, "/")
	if !ok {
		return out
	}
	if older, is := strings.CutPrefix(pairs, ":ENV:"); is {
		for pair := range strings.SplitSeq(older, ":ENV:") {
			if name, value, ok := strings.Cut(pair, "="); ok && name != "" {
				out[pathVariable(name)] = value
			}
		}
		return out
	}
	words := strings.Split(pairs, "/")
	for i := 0; i+1 < len(words); i += 2 {
		if words[i] != "" {
			out[pathVariable(words[i])] = strings.ReplaceAll(words[i+1], "--slash--", "/")
		}
	}
	return out
}

// pathVariable returns the variable that a name in a webhook's path stands for.
func pathVariable(name string) string {
	switch name {
	case "cluster":
		return envCluster
	case "net":
		return envNetwork
	}
	return strings.ToUpper(name)
}

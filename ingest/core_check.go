package ingest

import (
	"maps"
	"slices"
	"strconv"

	meshconfig "istio.io/api/mesh/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

// checkPod says what the Trimmer found, because a trimmed Pod no longer shows where.
func checkPod(o *Pod) *problem { return o.bad }

// badPod is what a directory of YAML may have wrong in a Pod; an API server has looked before.
func badPod(o *corev1.Pod) *problem {
	c := &check{}
	for i := range o.Spec.Containers {
		for j, p := range o.Spec.Containers[i].Ports {
			if p.ContainerPort < 1 || p.ContainerPort > 65535 {
				c.within(item(item("spec.containers", i)+".ports", j)+".containerPort", int64(p.ContainerPort), 1, 65535)
			}
		}
	}
	if ip := o.Status.PodIP; ip != "" && isNoAddress(ip) {
		c.address("status.podIP", ip)
	}
	for i, ip := range o.Status.PodIPs {
		if ip.IP != "" && isNoAddress(ip.IP) {
			c.address(item("status.podIPs", i)+".ip", ip.IP)
		}
	}
	return c.first
}

// checkService looks at what a directory of YAML may have wrong; an API server has looked before.
func checkService(o *corev1.Service) *problem {
	c := &check{}
	for i, p := range o.Spec.Ports {
		c.within(item("spec.ports", i)+".port", int64(p.Port), 1, 65535)
		c.within(item("spec.ports", i)+".targetPort", int64(targetNumber(p.TargetPort)), 0, 65535)
	}
	if ip := o.Spec.ClusterIP; ip != "" && ip != corev1.ClusterIPNone {
		c.address("spec.clusterIP", ip)
	}
	for i, ip := range o.Spec.ClusterIPs {
		if ip != corev1.ClusterIPNone {
			c.address(item("spec.clusterIPs", i), ip)
		}
	}
	c.that(o.Spec.Type != corev1.ServiceTypeExternalName || o.Spec.ExternalName != "", "spec.externalName", "expected a host name for type ExternalName")
	return c.first
}

func checkMesh(m *meshconfig.MeshConfig) *problem {
	c := &check{}
	c.that(isLabel(m.GetRootNamespace()), "rootNamespace", "expected a namespace, got %q", m.GetRootNamespace())
	c.that(m.GetTrustDomain() != "", "trustDomain", "expected a name")
	c.within("proxyListenPort", int64(m.GetProxyListenPort()), 1, 65535)
	c.within("proxyInboundListenPort", int64(m.GetProxyInboundListenPort()), 0, 65535)
	c.positive("connectTimeout", m.GetConnectTimeout())
	c.duration("protocolDetectionTimeout", m.GetProtocolDetectionTimeout(), true)
	c.duration("dnsRefreshRate", m.GetDnsRefreshRate(), true)
	c.locality("localityLbSetting", m.GetLocalityLbSetting())
	c.retries("defaultHttpRetryPolicy", m.GetDefaultHttpRetryPolicy())
	return c.first
}

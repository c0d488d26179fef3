package ingest

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	meshconfig "istio.io/api/mesh/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

// checkPod returns the problem that the Stripper found, because a stripped Pod no longer has the field.
func checkPod(o *Pod) *problem { return o.bad }

// badPod checks what may be wrong in a Pod from a directory. An API server has checked its own Pods already.
func badPod(o *corev1.Pod) *problem {
	c := &check{}
	for i := range o.Spec.Containers {
		for j, p := range o.Spec.Containers[i].Ports {
			if p.ContainerPort < 1 || p.ContainerPort > 65535 {
				c.within(item(item("spec.containers", i)+".ports", j)+".containerPort", int64(p.ContainerPort), 1,
					65535)
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

// checkService checks what may be wrong in a Service from a directory. An API server has checked its own already.
func checkService(o *corev1.Service) *problem {
	c := &check{}
	c.that(isLabel(o.Name), "metadata.name", "expected a name without dots, got %q", o.Name)
	c.servicePorts(o.Spec.Ports)
	if ip := o.Spec.ClusterIP; ip != "" && ip != corev1.ClusterIPNone {
		c.address("spec.clusterIP", ip)
	}
	for i, ip := range o.Spec.ClusterIPs {
		if ip != corev1.ClusterIPNone {
			c.address(item("spec.clusterIPs", i), ip)
		}
	}
	c.that(o.Spec.Type != corev1.ServiceTypeExternalName || o.Spec.ExternalName != "", "spec.externalName",
		"expected a host name for type ExternalName")
	return c.first
}

func (c *check) servicePorts(ports []corev1.ServicePort) {
	type socket struct {
		port     int32
		protocol corev1.Protocol
	}
	names, sockets := set[string]{}, set[socket]{}
	for i, p := range ports {
		at := item("spec.ports", i)
		c.within(at+".port", int64(p.Port), 1, 65535)
		c.within(at+".targetPort", int64(targetNumber(p.TargetPort)), 0, 65535)
		c.that(p.Name != "" || len(ports) == 1, at+".name", "expected a name, as there are several ports")
		c.that(p.Name == "" || isLabel(p.Name), at+".name", "expected lower case letters, digits and '-', got %q",
			p.Name)
		known := []corev1.Protocol{"", corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}
		c.that(slices.Contains(known, p.Protocol), at+".protocol", "expected TCP, UDP or SCTP, got %q", p.Protocol)
		c.that(firstTime(names, p.Name), at+".name", "%q is used twice", p.Name)
		c.that(firstTime(sockets, socket{p.Port, cmp.Or(p.Protocol, corev1.ProtocolTCP)}), at+".port",
			"%d is used twice", p.Port)
	}
}

func checkMesh(m *meshconfig.MeshConfig) *problem {
	c := &check{}
	c.that(isLabel(m.GetRootNamespace()), "rootNamespace", "expected a namespace, got %q", m.GetRootNamespace())
	c.that(m.GetTrustDomain() != "", "trustDomain", "expected a name")
	c.within("proxyListenPort", int64(m.GetProxyListenPort()), 1, 65535)
	c.within("proxyInboundListenPort", int64(m.GetProxyInboundListenPort()), 0, 65535)
	c.positive("connectTimeout", m.GetConnectTimeout())
	c.duration("protocolDetectionTimeout", m.GetProtocolDetectionTimeout(), true)
	c.positive("dnsRefreshRate", m.GetDnsRefreshRate())
	c.locality("localityLbSetting", m.GetLocalityLbSetting())
	c.retries("defaultHttpRetryPolicy", m.GetDefaultHttpRetryPolicy())
	c.pool("defaultTrafficPolicy.connectionPool", m.GetDefaultTrafficPolicy().GetConnectionPool())
	c.outlier("defaultTrafficPolicy.outlierDetection", m.GetDefaultTrafficPolicy().GetOutlierDetection())
	if k := m.GetTcpKeepalive(); k != nil {
		c.seconds("tcpKeepalive.time", k.GetTime())
		c.seconds("tcpKeepalive.interval", k.GetInterval())
	}
	c.clientTLS("outboundTrafficPolicy.tls", m.GetOutboundTrafficPolicy().GetTls())
	for i, s := range m.GetTlsDefaults().GetCipherSuites() {
		c.that(slices.Contains(knownCiphers(), s), item("tlsDefaults.cipherSuites", i),
			"expected a cipher suite that Envoy knows, got %q", s)
	}
	for i, s := range m.GetTlsDefaults().GetEcdhCurves() {
		known := []string{"P-256", "P-384", "P-521", "X25519", "X25519MLKEM768"}
		c.that(slices.Contains(known, s), item("tlsDefaults.ecdhCurves", i), "expected one of %s, got %q",
			strings.Join(known, ", "), s)
	}
	return c.first
}

package overlay

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"istio.io/api/annotation"
)

// Interception modes with a meaning of their own.
const (
	modeNone   = "NONE"
	modeTPROXY = "TPROXY"
)

// defaultID is the user and group of the proxy where nobody says otherwise; rules let it pass uncaptured.
const defaultID = 1337

// interception returns how the pod's traffic gets to the proxy.
func (d *Data) interception() string {
	return d.annotation(annotation.SidecarInterceptionMode.Name, d.ProxyConfig.GetInterceptionMode().String())
}

// captureContainer writes the rules that redirect traffic; where the node agent writes them it only checks them.
func (d *Data) captureContainer() (*corev1.Container, error) {
	g := &d.Chart.Global
	resources, err := d.resources()
	if err != nil {
		return nil, err
	}
	c := &corev1.Container{Name: "istio-init", Image: d.captureImage(), Args: d.captureArgs(),
		ImagePullPolicy: g.ImagePullPolicy, Resources: resources, Env: d.metadataEnv()}
	s := &corev1.SecurityContext{AllowPrivilegeEscalation: new(g.Proxy.Privileged), Privileged: new(g.Proxy.Privileged),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, SeccompProfile: seccomp(g.Proxy.SeccompProfile)}
	if d.Chart.Pilot.CNI.Enabled {
		c.Name = "istio-validation"
		s.ReadOnlyRootFilesystem, s.RunAsNonRoot = new(true), new(true)
		s.RunAsUser, s.RunAsGroup = new(d.proxyUser()), new(d.ProxyGID)
	} else {
		s.Capabilities.Add = []corev1.Capability{"NET_ADMIN", "NET_RAW"}
		s.ReadOnlyRootFilesystem, s.RunAsNonRoot = new(false), new(false)
		s.RunAsUser, s.RunAsGroup = new(int64(0)), new(int64(0))
	}
	c.SecurityContext = s
	return c, nil
}

// proxyUser returns whose traffic the rules let pass. With TPROXY the proxy runs as root, and rules go by the default.
func (d *Data) proxyUser() int64 {
	if d.interception() == modeTPROXY {
		return defaultID
	}
	return d.ProxyUID
}

func (d *Data) captureArgs() []string {
	g := &d.Chart.Global
	args := []string{"istio-iptables",
		"-p", port(d.MeshConfig.GetProxyListenPort(), "15001"), "-z", port(d.MeshConfig.GetProxyInboundListenPort(), "15006"),
		"-u", strconv.FormatInt(d.proxyUser(), 10), "-m", d.interception(),
		"-i", d.annotation(annotation.SidecarTrafficIncludeOutboundIPRanges.Name, g.Proxy.IncludeIPRanges),
		"-x", d.annotation(annotation.SidecarTrafficExcludeOutboundIPRanges.Name, g.Proxy.ExcludeIPRanges),
		"-b", d.annotation(annotation.SidecarTrafficIncludeInboundPorts.Name, string(g.Proxy.IncludeInboundPorts)),
		"-d", joinPorts("15090,15021", d.excludedInbound())}
	for _, f := range []struct{ flag, annotation, otherwise string }{
		{"-q", annotation.SidecarTrafficIncludeOutboundPorts.Name, string(g.Proxy.IncludeOutboundPorts)},
		{"-o", annotation.SidecarTrafficExcludeOutboundPorts.Name, string(g.Proxy.ExcludeOutboundPorts)},
	} {
		if d.has(f.annotation) || f.otherwise != "" {
			args = append(args, f.flag, d.annotation(f.annotation, f.otherwise))
		}
	}
	if interfaces, ok := d.rerouted(); ok {
		args = append(args, "-k", interfaces)
	}
	if d.has(annotation.SidecarTrafficExcludeInterfaces.Name) {
		args = append(args, "-c", d.annotation(annotation.SidecarTrafficExcludeInterfaces.Name, ""))
	}
	args = append(args, d.agentLogFlag())
	if g.LogAsJSON {
		args = append(args, "--log_as_json")
	}
	switch {
	case d.Chart.Pilot.CNI.Enabled:
		args = append(args, "--run-validation", "--skip-rule-apply")
	case g.ProxyInit.ForceApplyIptables:
		args = append(args, "--force-apply")
	}
	if g.NativeNftables {
		args = append(args, "--native-nftables")
	}
	return args
}

// rerouted returns the interfaces whose inbound traffic is treated as outbound. The older annotation stands where the
// newer one does not.
func (d *Data) rerouted() (string, bool) {
	for _, name := range []string{annotation.IoIstioRerouteVirtualInterfaces.Name,
		annotation.SidecarTrafficKubevirtInterfaces.Name} {
		if d.has(name) {
			return d.annotation(name, ""), true
		}
	}
	return "", false
}

// excludedInbound returns the inbound ports that are not captured; the agent's own is among them.
func (d *Data) excludedInbound() string {
	return excludeInboundPort(d.statusPort(), d.annotation(annotation.SidecarTrafficExcludeInboundPorts.Name,
		string(d.Chart.Global.Proxy.ExcludeInboundPorts)))
}

// captureAnnotations adds the annotations that tell the node agent what to capture, where that writes the rules.
func (d *Data) captureAnnotations(to map[string]string) {
	cni, p := &d.Chart.Pilot.CNI, &d.Chart.Global.Proxy
	if !cni.Enabled {
		return
	}
	if cni.Provider == "multus" {
		const networks = "k8s.v1.cni.cncf.io/networks"
		to[networks] = appendMultusNetwork(d.annotation(networks, ""), "default/istio-cni")
	}
	to[annotation.SidecarInterceptionMode.Name] = d.interception()
	to[annotation.SidecarTrafficExcludeInboundPorts.Name] = d.excludedInbound()
	// Empty means none, where no annotation means all.
	to[annotation.SidecarTrafficIncludeInboundPorts.Name] =
		d.annotation(annotation.SidecarTrafficIncludeInboundPorts.Name, string(p.IncludeInboundPorts))
	for name, otherwise := range map[string]string{
		annotation.SidecarTrafficIncludeOutboundIPRanges.Name: p.IncludeIPRanges,
		annotation.SidecarTrafficExcludeOutboundIPRanges.Name: p.ExcludeIPRanges,
		annotation.SidecarTrafficIncludeOutboundPorts.Name:    string(p.IncludeOutboundPorts),
		annotation.SidecarTrafficExcludeOutboundPorts.Name:    string(p.ExcludeOutboundPorts),
	} {
		if v := d.annotation(name, otherwise); v != "" {
			to[name] = v
		}
	}
}

// proxySecurity returns what the proxy may do: as little as its mode lets it.
func (d *Data) proxySecurity() *corev1.SecurityContext {
	p := &d.Chart.Global.Proxy
	s := &corev1.SecurityContext{AllowPrivilegeEscalation: new(p.Privileged), Privileged: new(p.Privileged),
		ReadOnlyRootFilesystem: new(true), SeccompProfile: seccomp(p.SeccompProfile),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		RunAsNonRoot: new(true), RunAsUser: new(d.ProxyUID), RunAsGroup: new(d.ProxyGID)}
	tracing := d.ProxyConfig.GetProxyMetadata()["IPTABLES_TRACE_LOGGING"] == "true"
	if tracing || d.interception() == modeTPROXY {
		s.Capabilities.Add = []corev1.Capability{"NET_ADMIN"}
	}
	if !tracing && d.annotation(CapNetBindService, string(p.CapNetBindService)) == "true" {
		s.Capabilities.Add = append(s.Capabilities.Add, "NET_BIND_SERVICE")
	}
	if len(s.Capabilities.Add) > 0 {
		s.RunAsNonRoot, s.RunAsUser, s.RunAsGroup = new(false), new(int64(0)), new(int64(defaultID))
	}
	if tracing {
		s.AllowPrivilegeEscalation, s.Privileged = new(true), new(true)
	}
	return s
}

// CapNetBindService is the annotation of a pod whose proxy listens at ports below 1024. Istio's API does not list it.
const CapNetBindService = "sidecar.istio.io/capNetBindService"

func port(n int32, otherwise string) string {
	if n == 0 {
		return otherwise
	}
	return strconv.Itoa(int(n))
}

// joinPorts joins lists of ports, leaving out empty ones.
func joinPorts(lists ...string) string {
	var out []string
	for _, l := range lists {
		if l != "" {
			out = append(out, l)
		}
	}
	return strings.Join(out, ",")
}

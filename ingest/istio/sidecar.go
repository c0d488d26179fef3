package istio

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Sidecar converts a Sidecar.
func Sidecar(in *networking.Sidecar) value.SidecarSettings {
	return value.SidecarSettings{
		Workload: in.GetWorkloadSelector().GetLabels(),
		Egress: each(in.GetEgress(), func(e *networking.IstioEgressListener) *value.EgressListener {
			return &value.EgressListener{Port: optional(e.GetPort(), sidecarPort), Bind: e.GetBind(),
				Capture: capture(e.GetCaptureMode()), Hosts: list(e.GetHosts())}
		}),
		Ingress: each(in.GetIngress(), func(i *networking.IstioIngressListener) *value.IngressListener {
			return &value.IngressListener{Port: sidecarPort(i.GetPort()), Bind: i.GetBind(),
				Capture: capture(i.GetCaptureMode()), Forward: i.GetDefaultEndpoint(),
				Pool: optional(i.GetConnectionPool(), Pool), TLS: ingressTLS(i.GetTls())}
		}),
		Outbound: optional(in.GetOutboundTrafficPolicy(), sidecarOutbound),
		Pool:     optional(in.GetInboundConnectionPool(), Pool),
	}
}

func sidecarPort(in *networking.SidecarPort) value.ListenerPort {
	return value.ListenerPort{Number: int(in.GetNumber()), Name: in.GetName(), Protocol: protocol(in.GetProtocol())}
}

// ingressTLS returns nil for settings that leave TLS to the application.
func ingressTLS(in *networking.ServerTLSSettings) *value.ServerTLS {
	if in.GetMode() == networking.ServerTLSSettings_PASSTHROUGH {
		return nil
	}
	return optional(in, serverTLS)
}

func capture(in networking.CaptureMode) value.CaptureMode {
	switch in {
	case networking.CaptureMode_IPTABLES:
		return value.CaptureIntercept
	case networking.CaptureMode_NONE:
		return value.CaptureNone
	}
	return value.CaptureDefault
}

func sidecarOutbound(in *networking.OutboundTrafficPolicy) value.SidecarOutbound {
	out := value.SidecarOutbound{Proxy: optional(in.GetEgressProxy(), destination)}
	if in.GetMode() == networking.OutboundTrafficPolicy_REGISTRY_ONLY {
		out.Mode = value.RegistryOnly
	}
	return out
}

// protocol returns the protocol of a declared port; Auto if the name is unknown.
func protocol(name string) value.Protocol {
	p, _ := value.ProtocolNamed(name)
	return p
}

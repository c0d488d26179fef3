package ingest

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// servicePort returns the protocol of a Service's port: from appProtocol, or from the start of its name. If neither
// names one, the well-known ports on which the server speaks first are TCP, because a proxy that waits for the client's
// first bytes would wait for ever; all others are sniffed.
func servicePort(p corev1.ServicePort) value.Protocol {
	if p.Protocol == corev1.ProtocolUDP {
		return value.UDP
	}
	name := p.Name
	if p.AppProtocol != nil {
		switch name = *p.AppProtocol; name {
		case "kubernetes.io/h2c":
			return value.HTTP2
		case "kubernetes.io/ws":
			return value.HTTP
		case "kubernetes.io/wss":
			return value.HTTPS
		}
	}
	if strings.HasPrefix(strings.ToLower(name), "grpc-web") {
		return value.GRPCWeb
	}
	name, _, _ = strings.Cut(name, "-")
	out := parseProtocol(name)
	if out == value.Auto && serverFirst(p.Port) {
		return value.TCP
	}
	return out
}

// serverFirst reports whether port is a well-known port of SMTP, DNS, MySQL or MongoDB, where the server speaks first.
func serverFirst(port int32) bool { return port == 25 || port == 53 || port == 3306 || port == 27017 }

// parseProtocol parses a protocol's name, as ServiceEntries and Gateways write it too; Auto if it is unknown.
func parseProtocol(name string) value.Protocol {
	switch strings.ToLower(name) {
	case "http", "http_proxy":
		return value.HTTP
	case "http2":
		return value.HTTP2
	case "grpc":
		return value.GRPC
	case "grpc-web":
		return value.GRPCWeb
	case "https":
		return value.HTTPS
	case "tls":
		return value.TLS
	case "tcp":
		return value.TCP
	case "udp":
		return value.UDP
	case "mongo":
		return value.Mongo
	case "redis":
		return value.Redis
	case "mysql":
		return value.MySQL
	case "hbone":
		return value.HBONE
	}
	return value.Auto
}

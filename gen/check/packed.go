package check

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	corspb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	hcmpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcppb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	tlspb "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	httppb "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/proto"
)

// Message returns the rules that a message of any type breaks: those that its type declares, and what else is known of
// types that are packed in others.
func Message(m proto.Message) []Fault {
	f := &faults{}
	f.validate(m)
	switch m := m.(type) {
	case *hcmpb.HttpConnectionManager:
		f.duration("stream_idle_timeout", m.GetStreamIdleTimeout())
		for i, v := range m.GetRouteConfig().GetVirtualHosts() {
			for _, fault := range VirtualHost(v, 0) {
				f.add(fmt.Sprintf("route_config.virtual_hosts[%d].%s", i, fault.Path), "%s", fault.Reason)
			}
		}
	case *tcppb.TcpProxy:
		f.tcpProxy(m)
	case *corspb.CorsPolicy:
		f.cors("", m)
	case *tlspb.UpstreamTlsContext:
		f.tls(m.GetCommonTlsContext())
	case *tlspb.DownstreamTlsContext:
		f.tls(m.GetCommonTlsContext())
	case *httppb.HttpProtocolOptions:
		f.duration("common_http_protocol_options.idle_timeout", m.GetCommonHttpProtocolOptions().GetIdleTimeout())
		f.duration("common_http_protocol_options.max_connection_duration",
			m.GetCommonHttpProtocolOptions().GetMaxConnectionDuration())
	}
	return f.list
}

func (f *faults) tcpProxy(m *tcppb.TcpProxy) {
	f.duration("idle_timeout", m.GetIdleTimeout())
	f.duration("max_downstream_connection_duration", m.GetMaxDownstreamConnectionDuration())
	if w := m.GetWeightedClusters(); w != nil {
		var sum uint64
		for _, c := range w.GetClusters() {
			sum += uint64(c.GetWeight())
		}
		f.sum("weighted_clusters", sum)
	}
}

// sumSize is the length of a SHA-256.
const sumSize = 32

func (f *faults) tls(c *tlspb.CommonTlsContext) {
	v := c.GetValidationContext()
	if combined := c.GetCombinedValidationContext(); combined != nil {
		v = combined.GetDefaultValidationContext()
	}
	for i, s := range v.GetVerifyCertificateHash() {
		if b, err := hex.DecodeString(strings.ReplaceAll(s, ":", "")); err != nil || len(b) != sumSize {
			f.add(fmt.Sprintf("validation_context.verify_certificate_hash[%d]", i),
				"%s is no SHA-256 in hexadecimal digits", cut(s))
		}
	}
	for i, s := range v.GetVerifyCertificateSpki() {
		if b, err := base64.StdEncoding.DecodeString(s); err != nil || len(b) != sumSize {
			f.add(fmt.Sprintf("validation_context.verify_certificate_spki[%d]", i), "%s is no SHA-256 in base64",
				cut(s))
		}
	}
	//lint:ignore SA1019 it is what pilotd sends
	for i, m := range v.GetMatchSubjectAltNames() {
		f.matcher(fmt.Sprintf("validation_context.match_subject_alt_names[%d]", i), m)
	}
	for i, p := range c.GetAlpnProtocols() {
		if n := len(p); n == 0 || n > 255 {
			f.add(fmt.Sprintf("alpn_protocols[%d]", i), "has %d bytes, it must have 1 to 255", n)
		}
	}
}

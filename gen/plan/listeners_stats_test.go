package plan

import (
	"slices"
	"testing"

	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tcppb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"golang.org/x/tools/txtar"
	"google.golang.org/protobuf/proto"
)

// TestStatNames: the mesh's patterns name the statistics of chains of bytes, in both directions.
func TestStatNames(t *testing.T) {
	w := newListenerMesh(t, txtar.Parse([]byte(`-- mesh --
{outboundClusterStatName: "%SERVICE%_%SERVICE_PORT%_%SERVICE_PORT_NAME%_%SUBSET_NAME%", inboundClusterStatName: "in %SERVICE_FQDN% %SERVICE_PORT_NAME%", rootNamespace: root, proxyListenPort: 15001, proxyInboundListenPort: 15006}
-- services --
db.shop.svc.cluster.local shop own at=10.96.0.1 pg:5432:TCP
log.shop.svc.cluster.local shop at=10.96.0.2 sink:6000:TCP
-- virtualservice shop/log 1 --
hosts: [log.shop.svc.cluster.local]
tcp: [{route: [{destination: {host: db.shop.svc.cluster.local, subset: v1}}]}]
`)))
	for name, want := range map[string][]string{
		"10.96.0.1_5432": {"db.shop_5432__"},
		"10.96.0.2_6000": {"db.shop_6000_sink_v1"},
		"virtualInbound": {"BlackHoleCluster", "in  virtualInbound", "in db.shop.svc.cluster.local pg"},
	} {
		l := &listenerpb.Listener{}
		if err := proto.Unmarshal(w.listeners()[name].Message(), l); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range l.GetFilterChains() {
			for _, f := range c.GetFilters() {
				if tcp := (&tcppb.TcpProxy{}); f.GetTypedConfig().UnmarshalTo(tcp) == nil {
					got = append(got, tcp.GetStatPrefix())
				}
			}
		}
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

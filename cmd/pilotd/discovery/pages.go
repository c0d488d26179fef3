package discovery

import (
	"net/http"

	"github.com/pilotd/pilotd/shard"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/status"
)

// Pages are the debug pages of this server.
func (s *Server) Pages() map[string]status.Page {
	return map[string]status.Page{
		"syncz":       s.syncz,
		"config_dump": s.configDump,
		"registryz":   status.Registry(s.Builder.View),
		"endpointz":   status.Endpoints(s.Builder.View),
		"rejectionsz": func(*http.Request) (any, error) { return s.Store.Rejections(), nil },
		"shardz":      func(*http.Request) (any, error) { return s.Shards.Figures(), nil },
	}
}

// syncStatus is a proxy as istiod's syncz writes it, and more about each type.
type syncStatus struct {
	ClusterID     string                `json:"cluster_id,omitempty"`
	ProxyID       string                `json:"proxy"`
	ProxyType     string                `json:"proxy_type"`
	Version       string                `json:"istio_version,omitempty"`
	Class         string                `json:"class"`
	Shard         int                   `json:"shard"`
	ClusterSent   string                `json:"cluster_sent,omitempty"`
	ClusterAcked  string                `json:"cluster_acked,omitempty"`
	ListenerSent  string                `json:"listener_sent,omitempty"`
	ListenerAcked string                `json:"listener_acked,omitempty"`
	RouteSent     string                `json:"route_sent,omitempty"`
	RouteAcked    string                `json:"route_acked,omitempty"`
	EndpointSent  string                `json:"endpoint_sent,omitempty"`
	EndpointAcked string                `json:"endpoint_acked,omitempty"`
	Types         map[string]ads.Status `json:"types"`
}

// syncz says of every proxy what it was sent, ACKed and refused.
func (s *Server) syncz(*http.Request) (any, error) {
	out := []syncStatus{}
	for _, c := range s.Shards.Clients() {
		st := syncStatus{
			ClusterID: c.Proxy.ClusterID, ProxyID: c.Proxy.Name + "." + c.Proxy.Namespace, ProxyType: proxyType(c), Version: c.Proxy.Version,
			Class: c.Class, Shard: c.Shard, Types: map[string]ads.Status{},
		}
		for t, ts := range c.Types {
			st.Types[short(t)] = ts.Status
			sent, acked := ts.Sent.Nonce, ts.Acked.Nonce
			switch t {
			case ads.Clusters:
				st.ClusterSent, st.ClusterAcked = sent, acked
			case ads.Endpoints:
				st.EndpointSent, st.EndpointAcked = sent, acked
			case ads.Listeners:
				st.ListenerSent, st.ListenerAcked = sent, acked
			case ads.Routes:
				st.RouteSent, st.RouteAcked = sent, acked
			}
		}
		out = append(out, st)
	}
	return out, nil
}

func proxyType(c shard.Client) string {
	for i := range c.Proxy.ID {
		if c.Proxy.ID[i] == '~' {
			return c.Proxy.ID[:i]
		}
	}
	return ""
}

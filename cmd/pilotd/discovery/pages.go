package discovery

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotd/pilotd/encodecache"
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

// dumpedResource is a resource that a proxy was sent.
type dumpedResource struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Resource any    `json:"resource"`
}

// dumpedType is all that a proxy was sent of a type.
type dumpedType struct {
	TypeURL   string           `json:"type_url"`
	SentAt    time.Time        `json:"sent_at"`
	Resources []dumpedResource `json:"resources"`
}

// configDump is what the proxy of the parameter proxyID (a node id, or pod.namespace) was really sent and has not been told to drop.
func (s *Server) configDump(r *http.Request) (any, error) {
	id := r.FormValue("proxyID")
	if id == "" {
		return nil, fmt.Errorf("parameter proxyID is missing: want a node id or pod.namespace")
	}
	clients := s.Shards.Find(id)
	if len(clients) == 0 {
		return nil, fmt.Errorf("proxyID=%s: no such proxy is connected here", id)
	}
	c := clients[len(clients)-1]
	dump := struct {
		Proxy    string       `json:"proxy"`
		Class    string       `json:"class"`
		Revision uint64       `json:"revision"`
		Types    []dumpedType `json:"configs"`
	}{c.Proxy.ID, c.Class, c.Revision, nil}
	for _, t := range []ads.Type{ads.Clusters, ads.Endpoints, ads.Listeners, ads.Routes} {
		ts, ok := c.Types[t]
		if !ok {
			continue
		}
		d := dumpedType{TypeURL: t.URL(), SentAt: ts.Sent.Time, Resources: []dumpedResource{}}
		for _, e := range ts.Entries {
			content, err := decoded(e)
			if err != nil {
				return nil, err
			}
			d.Resources = append(d.Resources, dumpedResource{e.Name(), e.Version(), content})
		}
		dump.Types = append(dump.Types, d)
	}
	return dump, nil
}

// decoded is a resource as JSON, with every Any opened that this build knows.
func decoded(e *encodecache.Entry) (any, error) {
	var a anypb.Any
	if err := unmarshal(e, &a); err != nil {
		return nil, err
	}
	b, err := protojson.Marshal(&a)
	if err != nil { // a type inside that this build does not know: show the bytes
		return map[string]any{"@type": a.TypeUrl, "value": a.Value}, nil
	}
	return json.RawMessage(b), nil
}

func unmarshal(e *encodecache.Entry, a *anypb.Any) error {
	var b []byte
	for _, p := range e.Frame().Pieces {
		b = append(b, p...)
	}
	return proto.Unmarshal(b, a)
}

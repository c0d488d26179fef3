package discovery

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/pilotd/pilotd/shard"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/status"
)

// Pages returns the debug pages of this server.
func (s *Server) Pages() map[string]status.Page {
	return map[string]status.Page{
		"syncz":       s.syncz,
		"config_dump": s.configDump,
		"registryz":   status.Registry(s.Builder.View),
		"endpointz":   status.Endpoints(s.Builder.View),
		"rejectionsz": func(*http.Request) (any, error) { return s.Reports.All(), nil },
		"shardz":      s.shardz,
	}
}

// syncStatus is the state of a proxy in the JSON form of istiod's syncz page, with more about each type.
type syncStatus struct {
	ClusterID string                `json:"cluster_id,omitempty"`
	ProxyID   string                `json:"proxy"`
	ProxyType string                `json:"proxy_type"`
	Version   string                `json:"istio_version,omitempty"`
	Class     string                `json:"class"`
	Shard     int                   `json:"shard"`
	Types     map[string]ads.Status `json:"types"`

	// nonces are written as separate fields, cluster_sent, cluster_acked and so on, because istioctl reads them so.
	nonces map[string]string
}

// MarshalJSON writes the fields, and the nonces beside them.
func (s syncStatus) MarshalJSON() ([]byte, error) {
	type fields syncStatus // the same fields without this method
	out, err := json.Marshal(fields(s))
	if err != nil || len(s.nonces) == 0 {
		return out, err
	}
	nonces, err := json.Marshal(s.nonces)
	if err != nil {
		return nil, err
	}
	return append(append(out[:len(out)-1], ','), nonces[1:]...), nil
}

// syncz returns what every proxy was sent, ACKed and refused.
func (s *Server) syncz(*http.Request) (any, error) {
	out := []syncStatus{}
	for _, c := range s.Shards.Clients() {
		st := syncStatus{
			ClusterID: c.Proxy.ClusterID, ProxyID: c.Proxy.Name + "." + c.Proxy.Namespace, ProxyType: proxyType(c),
			Version: c.Proxy.Version,
			Class:   c.Class, Shard: c.Shard, Types: map[string]ads.Status{}, nonces: map[string]string{},
		}
		for t, ts := range c.Types {
			st.Types[short(t)] = ts.Status
			for what, nonce := range map[string]string{"_sent": ts.Sent.Nonce, "_acked": ts.Acked.Nonce} {
				if nonce != "" {
					st.nonces[t.Row().Noun+what] = nonce
				}
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

// shardStatus is the state of the shards and of the clients that wait to be answered.
type shardStatus struct {
	Shards []shard.Stats `json:"shards"`
	// UnwrittenBytes counts the responses that are not written yet. UnderwayBytes counts the answers to connecting
	// proxies; above UnderwayLimit others must wait.
	UnwrittenBytes int `json:"unwritten_bytes"`
	UnderwayBytes  int `json:"underway_bytes"`
	UnderwayLimit  int `json:"underway_limit"`
	// Memory is what the last reading found in use, the limit in force, and what was given up because of it.
	Memory shard.MemoryStats `json:"memory"`
	// Waiting lists the first maxListed waiting proxies, the next one first; WaitingFor counts all of them by what they
	// wait for.
	WaitingFor map[string]int  `json:"waiting_for"`
	Waiting    []waitingStatus `json:"waiting"`
}

type waitingStatus struct {
	ProxyID  string    `json:"proxy"`
	Priority string    `json:"priority"`
	Planned  bool      `json:"planned"`
	Since    time.Time `json:"since"`
}

// maxListed bounds the proxies in that list.
const maxListed = 100

func (s *Server) shardz(*http.Request) (any, error) {
	out := shardStatus{Shards: s.Shards.Stats(), UnwrittenBytes: s.Streams.Unwritten(),
		Memory: s.Shards.MemoryStats(), WaitingFor: map[string]int{}, Waiting: []waitingStatus{}}
	out.UnderwayBytes, out.UnderwayLimit = s.Shards.Underway()
	for _, w := range s.Shards.Waiting() {
		out.WaitingFor[w.Priority.String()]++
		if len(out.Waiting) < maxListed {
			out.Waiting = append(out.Waiting, waitingStatus{w.Proxy.Name + "." + w.Proxy.Namespace, w.Priority.String(),
				w.Planned, w.Since})
		}
	}
	return out, nil
}

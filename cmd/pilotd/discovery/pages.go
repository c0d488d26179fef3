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

// syncStatus is a proxy as istiod's syncz writes it, and more about each type.
type syncStatus struct {
	ClusterID string                `json:"cluster_id,omitempty"`
	ProxyID   string                `json:"proxy"`
	ProxyType string                `json:"proxy_type"`
	Version   string                `json:"istio_version,omitempty"`
	Class     string                `json:"class"`
	Shard     int                   `json:"shard"`
	Types     map[string]ads.Status `json:"types"`

	// nonces are fields of their own, as istioctl reads them: cluster_sent, cluster_acked and so on.
	nonces map[string]string
}

// MarshalJSON writes the fields, and the nonces beside them.
func (s syncStatus) MarshalJSON() ([]byte, error) {
	type fields syncStatus // without this method
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

// syncz says of every proxy what it was sent, ACKed and refused.
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

// shardStatus is what the shards do, and who waits to be answered.
type shardStatus struct {
	Shards []shard.Stats `json:"shards"`
	// UnwrittenBytes are those of all responses that are not written yet. UnderwayBytes are those of answers to proxies
	// that connect, of which there may be UnderwayLimit before others wait.
	UnwrittenBytes int `json:"unwritten_bytes"`
	UnderwayBytes  int `json:"underway_bytes"`
	UnderwayLimit  int `json:"underway_limit"`
	// Memory is what was last found in use, the limit in force, and what has given way to it.
	Memory shard.MemoryStats `json:"memory"`
	// Waiting are the proxies that wait, the next one first, as far as maxListed; WaitingFor counts all by their need.
	WaitingFor map[string]int  `json:"waiting_for"`
	Waiting    []waitingStatus `json:"waiting"`
}

type waitingStatus struct {
	ProxyID  string    `json:"proxy"`
	Priority string    `json:"priority"`
	Planned  bool      `json:"planned"`
	Since    time.Time `json:"since"`
}

// maxListed is how many of those that wait are listed.
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

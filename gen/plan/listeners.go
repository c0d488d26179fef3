package plan

import (
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// listenerTables hold the sidecar listeners.
type listenerTables struct{}

func newListenerTables() listenerTables { return listenerTables{} }

// addressListeners are the outbound listeners at a service's own addresses (its VIPs; for headless TCP its endpoints').
func (t *Tables) addressListeners(n *snapshot.Snapshot, sc *Scope, svc *value.Service) []*encodecache.Entry {
	return nil
}

// wildcardListeners are the outbound listeners at the wildcard address of one port, for all services of the scope that share it.
func (t *Tables) wildcardListeners(n *snapshot.Snapshot, sc *Scope, port int) []*encodecache.Entry {
	return nil
}

// staticListeners are those that every sidecar of the scope has: virtualOutbound.
func (t *Tables) staticListeners(n *snapshot.Snapshot, sc *Scope) []*encodecache.Entry { return nil }

// inboundListeners are virtualInbound, or with interception mode NONE the listeners at the workload's real ports. omit are the names of
// outbound listeners that this proxy must not have: those at its own headless address.
func (t *Tables) inboundListeners(n *snapshot.Snapshot, sc *Scope, own *Own) (add []*encodecache.Entry, omit []string) {
	return nil, nil
}

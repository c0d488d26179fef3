package inbound

import (
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/xdstype"
)

// Tables hold what overlays are put together from, for all classes of a process. Safe for concurrent use.
type Tables struct {
	// clusters are what the clusters of all ports of a kind share.
	clusters checked.Table[gen.InboundClusterKey, encodecache.Template]
	// A listener is a header, the chains of ports that nobody declares (fixed), and those of the declared ports, of which
	// all of a kind share the templates (ports).
	headers checked.Table[gen.InboundListenerKey, encodecache.Fragment]
	fixed   checked.Table[gen.InboundChainsKey, encodecache.Fragment]
	ports   checked.Table[gen.InboundChainsKey, encodecache.Template]
	// servers are the listeners of gRPC servers.
	servers checked.Table[gen.ServerListenerKey, encodecache.Entry]
	// regexSize is the largest RE2 program that upstream Envoys take. Immutable once the Tables are used.
	regexSize int
}

// NewTables makes empty Tables.
func NewTables(f *checked.Faults) Tables {
	return Tables{
		clusters: checked.Templates(f, "inbound clusters", clusterPlaceholders(), gen.EncodeInboundCluster),
		headers:  checked.Fragments(f, "listener", gen.EncodeInboundListener),
		fixed:    checked.Fragments(f, "filter chains", gen.EncodeInboundRest),
		ports:    checked.Templates(f, "inbound filter chains", chainPlaceholders(), gen.EncodeInboundChains),
		servers:  checked.Leaves(f, "listener", xdstype.ListenerURL, gen.EncodeServerListener),
	}
}

// LimitRegex sets the largest RE2 program of a regular expression that upstream Envoys take. It must be called before
// the Tables are used.
func (t *Tables) LimitRegex(size int) { t.regexSize = size }

// Sizes returns how many Keys each table holds, by the table.
func (t *Tables) Sizes() map[string]int {
	return map[string]int{"clusters": t.clusters.Len(), "headers": t.headers.Len(), "fixed": t.fixed.Len(),
		"ports": t.ports.Len(), "servers": t.servers.Len()}
}

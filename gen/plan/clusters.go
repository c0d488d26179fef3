package plan

import (
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// clusterTables hold the clusters and endpoint assignments.
type clusterTables struct{}

func newClusterTables() clusterTables { return clusterTables{} }

// clustersOf are the outbound clusters of one service (every port and subset) and the endpoint assignments that they name.
func (t *Tables) clustersOf(n *snapshot.Snapshot, sc *Scope, svc *value.Service) ([]*encodecache.Entry, []*Assignment) {
	return nil, nil
}

// staticClusters are those that every proxy of the scope has whatever services there are: BlackHoleCluster and the passthrough ones.
func (t *Tables) staticClusters(n *snapshot.Snapshot, sc *Scope) []*encodecache.Entry { return nil }

// inboundClusters are those of a proxy's own ports.
func (t *Tables) inboundClusters(n *snapshot.Snapshot, sc *Scope, own *Own) []*encodecache.Entry {
	return nil
}

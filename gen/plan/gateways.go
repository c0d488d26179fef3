package plan

import (
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot"
)

// gatewayTables hold the listeners and route configurations of routers.
type gatewayTables struct{}

func newGatewayTables() gatewayTables { return gatewayTables{} }

// gatewayConfig are the listeners and route configurations of a router: of all Gateways whose selector its labels satisfy, merged.
func (t *Tables) gatewayConfig(n *snapshot.Snapshot, sc *Scope) (listeners, routes []*encodecache.Entry) {
	return nil, nil
}

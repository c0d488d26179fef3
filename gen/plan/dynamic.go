package plan

import (
	"slices"

	"github.com/pilotd/pilotd/gen/plan/outbound"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot"
)

// moveDynamic replaces virtualOutbound where it depends on services, and a touched one may change it.
func (t *Tables) moveDynamic(m *move) {
	if m.affected.Virtual {
		t.moveVirtual(m)
		return
	}
	if m.affected.All || !outbound.DynamicDNS(m.n, m.to).Served {
		return
	}
	bytes := func(sc *scope.Scope, n *snapshot.Snapshot, host string) bool {
		svc := sc.Service(n, host)
		return svc != nil && slices.ContainsFunc(svc.Ports, outbound.SpeaksFirst)
	}
	for host := range m.affected.EachHost(m.from.snap, m.n) {
		if bytes(m.from.scope, m.from.snap, host) || bytes(m.to.Unwatched(), m.n, host) {
			t.moveVirtual(m)
			return
		}
	}
}

package shard

import (
	"github.com/pilotd/pilotd/gen/plan"
)

// Planner computes what proxies should have, and answers through the plan.Sink that the Shards are.
type Planner interface {
	// Attach asks for the class and World of p, told by Assigned until Detach.
	Attach(id uint64, p *plan.Proxy)
	// Detach ends that.
	Detach(id uint64)
}

package envoy

import (
	"context"
	"fmt"
	"sync/atomic"
)

// Readiness checks whether Envoy is ready. It remembers that configuration has come once: a control plane that is away
// later does not make the pod unready.
type Readiness struct {
	configured, working atomic.Bool
}

const readyFilter = "%5E(cluster_manager.cds.update_(success|rejected)|listener_manager.lds.update_(success|rejected)|" +
	"listener_manager.workers_started|server.state)%24"

// Check returns nil if Envoy has clusters and listeners from its control plane, is live, and its workers have started.
func (r *Readiness) Check(ctx context.Context, a Admin) error {
	if r.configured.Load() && r.working.Load() {
		return nil
	}
	stats, err := a.Stats(ctx, readyFilter)
	if err != nil {
		return err
	}
	if !r.configured.Load() {
		for _, of := range []struct{ name, noun string }{{"cluster_manager.cds", "clusters"},
			{"listener_manager.lds", "listeners"}} {
			switch {
			case stats[of.name+".update_success"] > 0:
			case stats[of.name+".update_rejected"] > 0:
				return fmt.Errorf("envoy has refused its %s", of.noun)
			default:
				return fmt.Errorf("envoy has no %s from its control plane yet", of.noun)
			}
		}
		r.configured.Store(true)
	}
	switch state, ok := stats["server.state"]; {
	case ok && state != 0:
		return fmt.Errorf("envoy is not live: its state is %d", state)
	case stats["listener_manager.workers_started"] == 0:
		return fmt.Errorf("envoy's workers have not started: a listener or a cluster waits for its configuration")
	}
	r.working.Store(true)
	return nil
}

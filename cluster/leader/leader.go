// Package leader elects one replica for work that only one replica may do.
//
// Run calls its function while this replica leads, and never twice at the same time. Another replica may begin some
// seconds before the function has returned here, if this replica was cut off from the API server: so everything that a
// leader writes must be safe to write twice.
package leader

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Options are the settings of an election.
type Options struct {
	// Leases is the client for the Lease; Namespace and Name are the Lease's.
	Leases          coordinationclient.LeasesGetter
	Namespace, Name string
	// Holder names this replica.
	Holder string
	// Lasts is how long a Lease is valid without renewal; 0 means 15 s.
	Lasts time.Duration
	// Log is the logger.
	Log *slog.Logger
}

// Run takes part in the election until ctx ends, and calls lead when this replica has won. The context of lead ends
// when this replica leads no more; lead must return then. At its end Run releases the Lease.
func Run(ctx context.Context, o Options, lead func(context.Context)) error {
	if o.Lasts == 0 {
		o.Lasts = 15 * time.Second
	}
	lock := &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name},
		Client: o.Leases, LockConfig: resourcelock.ResourceLockConfig{Identity: o.Holder}}
	for ctx.Err() == nil {
		t := term{lead: lead, ended: make(chan struct{})}
		e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: o.Lasts, RenewDeadline: o.Lasts * 2 / 3, RetryPeriod: o.Lasts * 2 / 15,
			ReleaseOnCancel: true, Name: o.Name,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: t.begin, OnStoppedLeading: func() {}},
		})
		if err != nil {
			return fmt.Errorf("election of %s: %w", o.Name, err)
		}
		e.Run(ctx)
		if t.end() {
			o.Log.Info("this replica does not lead any more", "lease", o.Name)
		}
	}
	return nil
}

// term is the time during which one election is valid.
type term struct {
	// Immutable.
	lead  func(context.Context)
	ended chan struct{} // closed when lead has returned

	mu sync.Mutex
	// Guarded by mu.
	leads, over bool
}

// begin is called on a goroutine when this replica has won, possibly after the term is over.
func (t *term) begin(ctx context.Context) {
	t.mu.Lock()
	t.leads = !t.over
	leads := t.leads
	t.mu.Unlock()
	if leads {
		defer close(t.ended)
		t.lead(ctx)
	}
}

// end waits for lead to return, and reports whether it was called. After end, begin does not call it.
func (t *term) end() bool {
	t.mu.Lock()
	t.over = true
	leads := t.leads
	t.mu.Unlock()
	if leads {
		<-t.ended
	}
	return leads
}

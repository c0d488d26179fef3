// Package leader elects one replica for what only one may do.
//
// Run has its function called while this replica leads, one call after the other, never two at once here. Elsewhere
// another may begin some seconds before this one has ended, when this one was cut off: so what a leader writes must be
// safe to write twice.
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
	// Leases is where the Lease is; Namespace and Name are its.
	Leases          coordinationclient.LeasesGetter
	Namespace, Name string
	// Holder names this replica.
	Holder string
	// Lasts is how long a Lease is good that is not renewed; 0 means 15 s.
	Lasts time.Duration
	// Log is the logger.
	Log *slog.Logger
}

// Run takes part in the election until ctx ends, and calls lead when this replica has won: its context ends when it
// leads no more, and it must return then. Who ends gives the Lease back.
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

// term is the time from one election to the next.
type term struct {
	// Immutable.
	lead  func(context.Context)
	ended chan struct{} // closed when lead has returned

	mu sync.Mutex
	// Guarded by mu.
	leads, over bool
}

// begin is called, in a goroutine, when this replica has won, which may be after the term is over.
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

// end waits for lead to return, and reports whether it was called. It is not called any more.
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

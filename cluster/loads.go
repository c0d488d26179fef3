package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// loadPrefix precedes the hash of a replica's name in the keys of the Lease's annotations.
	loadPrefix = "load.pilotd.io/"
	// loadStale is the number of rounds without a change after which a replica's load no longer counts; loadGone is the
	// number of further rounds after which other replicas delete its annotation.
	loadStale, loadGone = 3, 30
	// maxLoads is how many replicas are read at most.
	maxLoads = 1000
)

// Loads are the settings of ShareLoads.
type Loads struct {
	// Namespace and Name are those of the Lease that all replicas write; Replica names this one.
	Namespace, Name, Replica string
	// Own returns this replica's load, or false while it is not ready: then nothing is written.
	Own func() (int, bool)
	// Tell receives the other replicas' loads in each round. It is not called while they are not known.
	Tell func(others []int)
	// Every ticks once in each round.
	Every <-chan time.Time
	// Log is the logger.
	Log *slog.Logger
}

// heard is the last load of another replica. Owned by the goroutine of ShareLoads.
type heard struct {
	text  string
	still int // rounds since it has changed
}

// ShareLoads exchanges loads between the replicas of a revision, through one annotation for each replica in a Lease: in
// each round a single patch writes this replica's annotation and returns those of the others. It does not compare
// clocks: a replica whose annotation does not change for some rounds counts as gone. It returns when ctx ends, and
// deletes its own annotation then.
func (a *API) ShareLoads(ctx context.Context, o Loads) {
	sum := sha256.Sum256([]byte(o.Replica))
	own, known, told := loadPrefix+hex.EncodeToString(sum[:8]), map[string]*heard{}, ""
	for round := 0; ; round++ {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_, _ = a.writeLoads(last, o, map[string]any{own: nil}) // without this the others notice after some rounds
			return
		case <-o.Every:
		}
		n, ready := o.Own()
		if !ready {
			continue
		}
		write := map[string]any{own: fmt.Sprintf("%d %d", n, round)}
		for name, h := range known {
			if h.still >= loadGone {
				write[name] = nil
			}
		}
		all, err := a.writeLoads(ctx, o, write)
		if err != nil {
			if text := err.Error(); text != told && ctx.Err() == nil {
				told = text
				o.Log.Warn("replicas' loads cannot be shared", "lease", o.Name, "error", err)
			}
			continue
		}
		told = ""
		delete(all, own)
		o.Tell(hear(known, all))
	}
}

// hear updates what is known of other replicas, and returns the loads of those that have changed lately.
func hear(known map[string]*heard, all map[string]string) (loads []int) {
	for name := range known {
		if _, ok := all[name]; !ok {
			delete(known, name)
		}
	}
	for name, text := range all {
		if !strings.HasPrefix(name, loadPrefix) || len(known) >= maxLoads && known[name] == nil {
			continue
		}
		h := known[name]
		switch {
		case h == nil:
			// A replica that is new to us may have died long ago, so it counts only after its annotation has changed.
			known[name] = &heard{text: text, still: loadStale}
			continue
		case h.text != text:
			h.text, h.still = text, 0
		default:
			h.still++
		}
		first, _, _ := strings.Cut(text, " ")
		if n, err := strconv.Atoi(first); err == nil && n >= 0 && h.still < loadStale {
			loads = append(loads, n)
		}
	}
	return loads
}

// writeLoads changes annotations of the Lease, creates the Lease if it does not exist, and returns all annotations.
func (a *API) writeLoads(ctx context.Context, o Loads, annotations map[string]any) (map[string]string, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return nil, err
	}
	leases := a.Leases.Leases(o.Namespace)
	l, err := leases.Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		// The next round writes the annotation.
		l, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: o.Name}},
			metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return l.Annotations, nil
}

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
	// loadPrefix is before what stands for a replica in the Lease's annotations.
	loadPrefix = "load.pilotd.io/"
	// loadStale is after how many rounds in which a replica has said nothing new its load counts no more, loadGone after
	// how many others take it out.
	loadStale, loadGone = 3, 30
	// maxLoads is how many replicas are looked at.
	maxLoads = 1000
)

// Loads says how replicas tell each other of their loads.
type Loads struct {
	// Namespace and Name are those of the Lease that all of them write; Replica names this one.
	Namespace, Name, Replica string
	// Own returns this replica's load, and false while it is not ready: then it says nothing.
	Own func() (int, bool)
	// Tell is told of the other replicas' loads in each round; it is not told while they are not known.
	Tell func(others []int)
	// Every ticks once in each round.
	Every <-chan time.Time
	// Log is the logger.
	Log *slog.Logger
}

// heard is what another replica has said last. Owned by the goroutine of ShareLoads.
type heard struct {
	text  string
	still int // rounds since it has said something else
}

// ShareLoads has the replicas of a revision know each other's loads, by one annotation for each in a Lease: a single
// patch in each round writes the own one and brings the others. Clocks are not compared: a replica that says nothing
// new for some rounds is taken to be gone. It returns when ctx ends, and takes its own away then.
func (a *API) ShareLoads(ctx context.Context, o Loads) {
	sum := sha256.Sum256([]byte(o.Replica))
	own, known, told := loadPrefix+hex.EncodeToString(sum[:8]), map[string]*heard{}, ""
	for round := 0; ; round++ {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_, _ = a.writeLoads(last, o, map[string]any{own: nil}) // others find out by themselves
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

// hear notes what other replicas say, and returns the loads of those that have said something lately.
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
			// It may have been there for long: it counts when it says something else.
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

// writeLoads changes annotations of the Lease, makes it if it is not there, and returns all of them.
func (a *API) writeLoads(ctx context.Context, o Loads, annotations map[string]any) (map[string]string, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return nil, err
	}
	leases := a.Leases.Leases(o.Namespace)
	l, err := leases.Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		// The next round writes into it.
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

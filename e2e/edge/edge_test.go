package edge_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pilotd/pilotd/e2e/edge"
	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/snapshot/value"
)

// settings are how long a run is and what it does with a find.
type settings struct {
	seed uint64
	long time.Duration
	// keep is a directory for what is found; then a run goes on after a find. Empty ends the run at the first one.
	keep string
	// shrinks is how often a find is tried smaller.
	shrinks int
}

// readSettings takes them from the environment (see the Makefile).
func readSettings(t *testing.T) settings {
	t.Helper()
	s := settings{seed: 1, long: time.Minute, keep: os.Getenv("EDGE_KEEP"), shrinks: 40}
	var err error
	if v := os.Getenv("EDGE_SEED"); v != "" {
		if s.seed, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatalf("EDGE_SEED: %v", err)
		}
	}
	if v := os.Getenv("EDGE_FOR"); v != "" {
		if s.long, err = time.ParseDuration(v); err != nil {
			t.Fatalf("EDGE_FOR: %v", err)
		}
	}
	if v := os.Getenv("EDGE_SHRINKS"); v != "" {
		if s.shrinks, err = strconv.Atoi(v); err != nil {
			t.Fatalf("EDGE_SHRINKS: %v", err)
		}
	}
	return s
}

// TestEdgeValues writes objects with edge values in every field of every kind, as a tenant that means harm would. No
// Envoy refuses anything, the other tenant's traffic goes on and its edits arrive, pilotd lives, and Envoys that start
// half-way get everything else.
func TestEdgeValues(t *testing.T) {
	s := readSettings(t)
	t.Logf("seed %d for %v; again: EDGE_SEED=%d EDGE_FOR=%v make edge", s.seed, s.long, s.seed, s.long)
	m, err := edge.NewMaker(s.seed, edge.Kinds())
	if err != nil {
		t.Fatal(err)
	}
	r := &run{world: newWorld(t, ""), settings: s, maker: m, made: make(map[value.Kind]int),
		admitted: make(map[value.Kind]int), reasons: make(map[string]int), found: make(map[string]bool)}
	defer r.summary()
	started := time.Now()
	late := false
	for time.Since(started) < s.long {
		if !r.batch() {
			return
		}
		if !late && time.Since(started) > s.long/2 {
			late = true
			r.startLate(t, lateClient(), parts.Sidecar, parts.SotW)
			r.startLate(t, lateGateway(), parts.Gateway, parts.Delta)
		}
	}
	for kind, n := range r.made {
		if n >= 50 && r.admitted[kind]*10 < n*3 {
			t.Errorf("of %d objects of kind %s only %d were admitted: a run proves little unless 30%% are", n, kind,
				r.admitted[kind])
		}
	}
}

// run is one run of TestEdgeValues.
type run struct {
	*world
	settings settings
	maker    *edge.Maker
	batches  int
	made     map[value.Kind]int
	admitted map[value.Kind]int
	reasons  map[string]int
	// found are the fields that are known to be bad by now: objects that touch them are left out.
	found map[string]bool
}

// batch makes and applies one batch. False ends the run.
func (r *run) batch() bool {
	r.t.Helper()
	r.batches++
	var objects []edge.Object
	for slot := range slots {
		if o := r.maker.Next(slot); !r.known(o) {
			objects = append(objects, o)
		}
	}
	start := time.Now()
	problem := r.apply(objects)
	r.t.Logf("batch %d: %v", r.batches, time.Since(start).Round(time.Millisecond))
	r.count(objects)
	if problem == "" {
		return true
	}
	r.t.Logf("batch %d: %s", r.batches, problem)
	r.heal(r.t)
	culprits := r.isolate(objects)
	for _, c := range culprits {
		r.report([]edge.Object{c})
	}
	if len(culprits) == 0 {
		if few := r.together(objects); few != nil {
			r.report(few)
		} else {
			r.t.Errorf("batch %d of seed %d went wrong once and not again:\n%s", r.batches, r.settings.seed, problem)
		}
	}
	r.heal(r.t)
	return r.settings.keep != ""
}

// together finds the fewest objects that are bad together, nil if all of them are not bad any more.
func (r *run) together(objects []edge.Object) []edge.Object {
	r.t.Helper()
	if r.applyAnew(objects) == "" {
		return nil
	}
	for size := len(objects) / 2; size > 0; size /= 2 {
		for at := 0; at < len(objects) && len(objects) > 1; {
			less := slices.Delete(slices.Clone(objects), at, min(at+size, len(objects)))
			if len(less) > 0 && r.applyAnew(less) != "" {
				objects = less
			} else {
				at += size
			}
		}
	}
	return objects
}

func (r *run) known(o edge.Object) bool {
	return slices.ContainsFunc(o.Made, func(made string) bool { return r.found[o.Key().Kind.String()+" "+pathOf(made)] })
}

func pathOf(made string) string {
	path, _, _ := strings.Cut(made, " = ")
	return path
}

// isolate finds the objects that are bad alone.
func (r *run) isolate(objects []edge.Object) []edge.Object {
	r.t.Helper()
	var bad []edge.Object
	for _, half := range halves(objects) {
		if r.applyAnew(half) == "" {
			continue
		}
		if len(half) == 1 {
			bad = append(bad, half[0])
		} else {
			bad = append(bad, r.isolate(half)...)
		}
	}
	return bad
}

func halves(objects []edge.Object) [][]edge.Object {
	switch n := len(objects); n {
	case 0:
		return nil
	case 1:
		return [][]edge.Object{objects}
	default:
		return [][]edge.Object{objects[:n/2], objects[n/2:]}
	}
}

// report shrinks a find, prints it, and keeps it if that is wanted.
func (r *run) report(objects []edge.Object) {
	r.t.Helper()
	if len(objects) == 1 && len(objects[0].Made) == 1 {
		r.found[objects[0].Key().Kind.String()+" "+pathOf(objects[0].Made[0])] = true
	}
	small := slices.Clone(objects)
	for i, o := range small {
		small[i] = edge.Shrink(o, r.settings.shrinks, func(o edge.Object) bool {
			with := slices.Clone(small)
			with[i] = o
			return r.applyAnew(with) != ""
		})
	}
	problem := r.applyAnew(small)
	var text strings.Builder
	for i, o := range small {
		fmt.Fprintf(&text, "---\n# %s\n%s", strings.Join(objects[i].Made, "\n# "), o.YAML())
	}
	fmt.Fprintf(&text, "# %s\n", strings.ReplaceAll(fmt.Sprintf("%.1500s", problem), "\n", "\n# "))
	r.t.Errorf("seed %d: objects of the hostile tenant hurt others:\n%.8000s", r.settings.seed, text.String())
	if r.settings.keep == "" {
		return
	}
	name := fmt.Sprintf("%d-%03d-%s-%s.yaml", r.settings.seed, r.batches, strings.ToLower(small[0].Key().Kind.String()),
		small[0].Key().Name)
	if err := os.WriteFile(filepath.Join(r.settings.keep, name), []byte(text.String()), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// count notes which objects pilotd admitted.
func (r *run) count(objects []edge.Object) {
	r.t.Helper()
	complaints := r.complaints()
	for _, o := range objects {
		r.made[o.Key().Kind]++
		if c := complaints[o.Key()]; c.refused {
			r.reasons[fmt.Sprintf("%s %.150s", o.Key().Kind, strings.TrimSpace(c.lines))]++
		} else {
			r.admitted[o.Key().Kind]++
		}
	}
}

// summary prints what a run did.
func (r *run) summary() {
	all, had := r.maker.Fields()
	r.t.Logf("%d batches, %d of %d fields had an edge value", r.batches, had, all)
	for _, kind := range slices.Sorted(maps.Keys(r.made)) {
		r.t.Logf("%-16s %5d made, %5d admitted (%d%%)", kind, r.made[kind], r.admitted[kind],
			100*r.admitted[kind]/r.made[kind])
	}
	if os.Getenv("EDGE_REASONS") == "" {
		return
	}
	reasons := slices.Collect(maps.Keys(r.reasons))
	slices.SortFunc(reasons, func(a, b string) int { return cmp.Or(r.reasons[b]-r.reasons[a], strings.Compare(a, b)) })
	for _, reason := range reasons[:min(len(reasons), 150)] {
		r.t.Logf("%4d %s", r.reasons[reason], reason)
	}
}

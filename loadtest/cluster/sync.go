package cluster

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/loadtest/mesh"
)

// Progress says how far a Populate or a Delete has come.
type Progress struct {
	// Total is the number of objects to process.
	Total int
	// Written were created or changed, Removed deleted, and Kept were already right.
	Written, Removed, Kept int
}

// syncer makes the objects in an API server equal to the wanted ones.
type syncer struct {
	// Immutable.
	api     *api
	workers int
	live    func(mesh.Object) bool // whether edits change an object

	mu sync.Mutex
	// Guarded by mu.
	present  inventory // on the server, and not among the wanted ones so far
	versions versions  // of the objects that edits change
	progress Progress
}

// versions are the present resource versions of objects, by kind.
type versions map[string]map[name]string

func (v versions) set(kind string, n name, version string) {
	if v[kind] == nil {
		v[kind] = map[name]string{}
	}
	v[kind][n] = version
}

func newSyncer(a *api, workers int, present inventory, live func(mesh.Object) bool) *syncer {
	return &syncer{api: a, workers: max(1, workers), live: live, present: present, versions: versions{}}
}

// state returns the progress.
func (s *syncer) state() Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.progress
}

// put writes those objects that differ from the server's. Objects without a namespace come first, and all of them are
// written before the others.
func (s *syncer) put(ctx context.Context, objects iter.Seq[mesh.Object]) error {
	g, within := s.group(ctx)
	cluster := true
	for o := range objects {
		k := s.api.kinds[kindOf(o)]
		if cluster && !k.cluster {
			if err := g.Wait(); err != nil {
				return err
			}
			cluster = false
			g, within = s.group(ctx)
		}
		if within.Err() != nil {
			break
		}
		g.Go(func() error { return s.one(within, k, o) })
	}
	return g.Wait()
}

func (s *syncer) group(ctx context.Context) (*errgroup.Group, context.Context) {
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(s.workers)
	return g, within
}

func kindOf(o mesh.Object) string { return o.GetObjectKind().GroupVersionKind().Kind }

// one writes an object if it differs.
func (s *syncer) one(ctx context.Context, k kind, o mesh.Object) error {
	n, edited := nameOf(o), s.live(o)
	value := still
	if edited {
		value = live
	}
	says, err := sign(o, value)
	if err != nil {
		return describe(k, o, err)
	}
	s.mu.Lock()
	before, there := s.present[k.name][n]
	delete(s.present[k.name], n)
	s.mu.Unlock()
	version, same := before.version, there && before.content == says
	if !same {
		if version, err = s.api.put(ctx, k, o, before.version); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if edited {
		s.versions.set(k.name, n, version)
	}
	if same {
		s.progress.Kept++
	} else {
		s.progress.Written++
	}
	return nil
}

// removeRest deletes the objects that are not wanted, the last kinds first.
func (s *syncer) removeRest(ctx context.Context) error {
	for _, k := range slices.Backward(kinds()) {
		s.mu.Lock()
		rest := slices.Collect(maps.Keys(s.present[k.name]))
		s.present[k.name] = nil
		s.mu.Unlock()
		g, within := s.group(ctx)
		for _, n := range rest {
			g.Go(func() error {
				err := s.api.remove(within, k, &metav1.ObjectMeta{Namespace: n.namespace, Name: n.name})
				if err == nil && k.name == "Namespace" {
					err = s.api.finalize(within, n.name)
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				s.progress.Removed++
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
	}
	return nil
}

package cluster

import (
	"context"
	"time"

	"github.com/pilotd/pilotd/loadtest/mesh"
)

// Cluster is a mesh in an API server. Not safe for concurrent use.
type Cluster struct {
	*mesh.Editor

	// Immutable after Open.
	api     *api
	ctx     context.Context // ends all requests
	workers int

	versions versions // owned by the caller's goroutine: known versions of the objects that edits change
}

// Open finds the mesh in an API server. Edits are possible until ctx ends.
func Open(ctx context.Context, o Options) (*Cluster, error) {
	a, err := connect(o)
	if err != nil {
		return nil, err
	}
	s, err := a.shape(ctx)
	if err != nil {
		return nil, err
	}
	c := &Cluster{api: a, ctx: ctx, workers: o.Workers, versions: versions{}}
	c.Editor = mesh.NewEditor(mesh.New(s), c)
	return c, nil
}

// Write implements mesh.Writer.
func (c *Cluster) Write(change mesh.Change) (at time.Time, err error) {
	for i, w := range change.Writes {
		k, n := c.api.kinds[kindOf(w.Object)], nameOf(w.Object)
		o := dress(w.Object)
		if _, err := sign(o, live); err != nil {
			return at, describe(k, o, err)
		}
		if i == change.Mark {
			at = time.Now()
		}
		if w.Delete {
			delete(c.versions[k.name], n)
			if err := c.api.remove(c.ctx, k, o); err != nil {
				return at, err
			}
			continue
		}
		version, err := c.api.put(c.ctx, k, o, c.versions[k.name][n])
		if err != nil {
			return at, err
		}
		c.versions.set(k.name, n, version)
	}
	return at, nil
}

// Restore undoes all edits, including those of a run that was aborted.
func (c *Cluster) Restore() error {
	ctx := context.WithoutCancel(c.ctx)
	present, err := c.api.inventory(ctx, label+"="+live)
	if err != nil {
		return err
	}
	work := newSyncer(c.api, c.workers, present, func(mesh.Object) bool { return true })
	err = work.put(ctx, func(yield func(mesh.Object) bool) {
		for o := range c.Reset().Objects() {
			if !yield(dress(o)) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	c.versions = work.versions
	return work.removeRest(ctx)
}

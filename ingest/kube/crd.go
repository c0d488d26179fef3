package kube

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/pilotd/pilotd/ingest"
)

const (
	// crdResource is the resource that lists the custom kinds.
	crdResource = "customresourcedefinitions"
	// established is how long Synced waits for a kind whose CRD is there and which the server does not serve.
	established = 5 * time.Second
)

// crds starts and ends the readers of custom kinds as their CRDs come and go. It is a cache.ReflectorStore.
type crds struct {
	// Immutable after followCRDs.
	source  *Source
	ctx     context.Context // of the readers
	kinds   map[string]kind // by CRD name
	reading *sync.WaitGroup

	mu sync.Mutex
	// Guarded by mu.
	readers map[string]reader // by CRD name
	ended   bool              // the source ends: nothing is started any more
}

// crdKind returns the kind of CRDs. Without it custom kinds are asked for one by one.
func crdKind(s scope) kind {
	return kind{source: s.source, cluster: s.cluster,
		Kind: &ingest.Kind{Name: "CustomResourceDefinition.apiextensions.k8s.io"}, resource: crdResource,
		need: need{optional: true, loss: "custom kinds are asked for one by one"}}
}

// reader is a running reader of one kind.
type reader struct {
	stop context.CancelFunc
	done chan struct{}
}

// followCRDs reads the custom kinds, as far as they exist, until ctx ends.
func (s *Source) followCRDs(ctx context.Context) {
	client := s.clients.metadata.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: crdResource})
	var reading sync.WaitGroup
	_, custom := kindsOf(s.scope)
	c := &crds{source: s, ctx: ctx, kinds: custom, reading: &reading, readers: map[string]reader{}}
	late := time.AfterFunc(s.outbox.grace/2, func() {
		if s.outbox.waits(crdResource) { // The server hangs over this list; it may answer others.
			c.startAll()
		}
	})
	defer func() {
		late.Stop()
		c.mu.Lock()
		c.ended = true
		c.mu.Unlock()
		reading.Wait()
	}()
	s.reflect(ctx, crdResource, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o meta.ListOptions) (runtime.Object, error) {
			found, err := client.List(ctx, o)
			if err != nil && ctx.Err() == nil && !utilnet.IsConnectionRefused(err) {
				c.startAll()
			}
			return found, err
		},
		WatchFuncWithContext: func(ctx context.Context, o meta.ListOptions) (watch.Interface, error) {
			o.Watch = true
			return client.Watch(ctx, o)
		},
	}, c)
}

// startAll reads all kinds that there may be: which there are cannot be asked. Kinds that are not there are asked for
// again and again.
func (c *crds) startAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	for name := range c.kinds {
		c.start(name)
	}
	c.source.outbox.arrived(crdResource)
}

// Transformer keeps names alone: a cluster has hundreds of CRDs, and their annotations are long.
func (c *crds) Transformer() cache.TransformFunc {
	return func(o any) (any, error) {
		if m, ok := o.(*meta.PartialObjectMetadata); ok {
			m.ObjectMeta = meta.ObjectMeta{Name: m.Name, ResourceVersion: m.ResourceVersion}
		}
		return o, nil
	}
}

// Add takes a new CRD.
func (c *crds) Add(o any) error {
	m, err := accessor(o)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.start(m.GetName())
	}
	return err
}

// Update takes a change of a CRD, which may be one that was deleted and made again.
func (c *crds) Update(o any) error { return c.Add(o) }

// Delete takes the end of a CRD.
func (c *crds) Delete(o any) error {
	m, err := accessor(o)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.end(m.GetName())
	}
	return err
}

// Replace takes all CRDs that there are.
func (c *crds) Replace(objects []any, _ string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	present := map[string]bool{}
	for _, o := range objects {
		m, err := accessor(o)
		if err != nil {
			return err
		}
		present[m.GetName()] = true
		c.start(m.GetName())
	}
	for name := range c.readers {
		if !present[name] {
			c.end(name)
		}
	}
	c.source.outbox.arrived(crdResource) // After start said which kinds to wait for.
	return nil
}

// Resync does nothing.
func (c *crds) Resync() error { return nil }

// start begins to read a kind, unless it is read. Called under mu.
func (c *crds) start(name string) {
	k, ok := c.kinds[name]
	if _, running := c.readers[name]; !ok || running {
		return
	}
	ctx, stop := context.WithCancel(c.ctx)
	r := reader{stop: stop, done: make(chan struct{})}
	c.readers[name] = r
	c.source.outbox.expect(k)
	c.source.log.Info("kind is there", "crd", name)
	c.source.read(ctx, c.reading, func(ctx context.Context) {
		defer close(r.done)
		objects := newCollector(k, c.source)
		c.source.followCustom(ctx, k, objects)
		// The reader ended because its kind is gone, or because all of the source ends, which deletes nothing.
		if c.ctx.Err() == nil {
			objects.clear()
		}
		c.source.outbox.ended(k.resource)
	})
}

// end stops a reader; its objects are deleted. Called under mu.
func (c *crds) end(name string) {
	r, ok := c.readers[name]
	if !ok {
		return
	}
	delete(c.readers, name)
	c.source.log.Info("kind is gone, and its objects with it", "crd", name)
	r.stop()
	<-r.done // So that a successor's events come after the deletions.
}

// followCustom reads one custom kind until ctx ends, in the version that is served; in another one when that is no
// longer so.
func (s *Source) followCustom(ctx context.Context, k kind, objects *collector) {
	for {
		gv, ok := s.served(ctx, k)
		if !ok {
			return
		}
		ctx, gone := context.WithCancel(ctx)
		list, follow := k.requests(s.clients.of(gv), s)
		s.reflect(ctx, k.resource, &cache.ListWatch{
			WatchFuncWithContext: follow,
			ListWithContextFunc: func(ctx context.Context, o meta.ListOptions) (runtime.Object, error) {
				found, err := list(ctx, o)
				if apierrors.IsNotFound(err) {
					gone()
				}
				return found, err
			},
		}, objects)
		gone()
	}
}

// served finds the version in which the server serves a kind, and waits until it serves one: a CRD is there some
// moments before its kind is.
func (s *Source) served(ctx context.Context, k kind) (schema.GroupVersion, bool) {
	delay, since := backoff(), time.Now()
	delay.Duration = 10 * time.Millisecond
	for {
		for _, gv := range k.GroupVersions() {
			list, _ := k.requests(s.clients.of(gv), s)
			_, err := list(ctx, meta.ListOptions{Limit: 1})
			if err == nil {
				return gv, true
			}
			if !apierrors.IsNotFound(err) {
				if ctx.Err() == nil {
					s.complain(k.resource, err)
				}
				break // Nothing is known of this version: the next one is no better.
			}
			if time.Since(since) > established {
				s.outbox.arrived(k.resource)
			}
		}
		if !pause(ctx, delay.Step()) {
			return schema.GroupVersion{}, false
		}
	}
}

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
	// crdResource is the API's resource of CRDs.
	crdResource = "customresourcedefinitions"
	// established is how long Synced waits for a kind whose CRD exists and which the server does not serve yet.
	established = 5 * time.Second
)

// crds starts and ends the readers of custom kinds as their CRDs come and go. It is a cache.ReflectorStore.
type crds struct {
	// Immutable after followCRDs.
	source  *Source
	ctx     context.Context // parent context of the readers
	kinds   map[string]kind // by the name of the CRD
	reading *sync.WaitGroup

	mu sync.Mutex
	// Guarded by mu.
	readers map[string]reader // by the name of the CRD
	ended   bool              // the source is ending and starts no more readers
}

// crdKind returns the kind of CRDs. If CRDs cannot be listed, pilotd asks for each custom kind directly.
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

// followCRDs reads those custom kinds whose CRDs exist, until ctx ends.
func (s *Source) followCRDs(ctx context.Context) {
	client := s.clients.metadata.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: crdResource})
	var reading sync.WaitGroup
	_, custom := kindsOf(s.scope)
	c := &crds{source: s, ctx: ctx, kinds: custom, reading: &reading, readers: map[string]reader{}}
	late := time.AfterFunc(s.outbox.grace/2, func() {
		if s.outbox.waits(crdResource) { // the server may hang on this list and still answer others
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

// startAll reads every custom kind, for servers that do not list CRDs. It keeps retrying kinds that do not exist.
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

// Transformer keeps only names: a cluster has hundreds of CRDs with long annotations.
func (c *crds) Transformer() cache.TransformFunc {
	return func(o any) (any, error) {
		if m, ok := o.(*meta.PartialObjectMetadata); ok {
			m.ObjectMeta = meta.ObjectMeta{Name: m.Name, ResourceVersion: m.ResourceVersion}
		}
		return o, nil
	}
}

// Add receives a new CRD.
func (c *crds) Add(o any) error {
	m, err := accessor(o)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.start(m.GetName())
	}
	return err
}

// Update receives a change of a CRD, which may have been deleted and created again.
func (c *crds) Update(o any) error { return c.Add(o) }

// Delete receives the deletion of a CRD.
func (c *crds) Delete(o any) error {
	m, err := accessor(o)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.end(m.GetName())
	}
	return err
}

// Replace receives all CRDs that exist.
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
	c.source.outbox.arrived(crdResource) // after start has named the kinds to wait for
	return nil
}

// Resync does nothing.
func (c *crds) Resync() error { return nil }

// start starts the reader of a kind if it is not running. Called under mu.
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
		// The reader ended because its kind is gone, or because the whole source ends, in which case objects are kept.
		if c.ctx.Err() == nil {
			objects.clear()
		}
		c.source.outbox.ended(k.resource)
	})
}

// end stops a reader and deletes its objects. Called under mu.
func (c *crds) end(name string) {
	r, ok := c.readers[name]
	if !ok {
		return
	}
	delete(c.readers, name)
	c.source.log.Info("kind is gone, and its objects with it", "crd", name)
	r.stop()
	<-r.done // events of a new reader must come after the deletions
}

// followCustom reads one custom kind until ctx ends, in a version that the server serves. It changes to another version
// when the server stops serving the present one.
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

// served returns the version in which the server serves a kind, and waits until there is one: the server starts to
// serve a kind some moments after its CRD appears.
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
				break // an error tells nothing about the next version either
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

package cluster

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/secrets"
)

// MayListSecrets asks the server whether a service account may list the Secrets of its namespace. It implements
// secrets.Rights.
func (a *API) MayListSecrets(ctx context.Context, who identity.Identity) (bool, error) {
	r, err := a.authorization.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + who.Namespace + ":" + who.ServiceAccount,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: who.Namespace, Verb: "list",
				Resource: "secrets"},
		}}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return r.Status.Allowed, nil
}

// Credentials are Secrets and ConfigMaps that are wanted, as the server has them. Of all others in their namespaces
// only the names and versions are watched, and what one holds is asked for by its name. It implements secrets.Source.
type Credentials struct {
	// Immutable after NewCredentials.
	api  *API
	log  *slog.Logger
	tell func(secrets.Object, secrets.Found)
	wake chan struct{}

	mu sync.Mutex
	// Guarded by mu.
	wanted map[secrets.Object]*credential
	due    map[secrets.Object]struct{} // to be asked for
	spaces map[space]*spaceWatch
}

// credential is an object that is wanted.
type credential struct {
	version string // the resourceVersion that was told last
	told    bool   // the Store knows it
	asking  bool
	again   bool // it has changed while it was asked for
}

// space is the Secrets or the ConfigMaps of a namespace.
type space struct {
	configMaps bool
	namespace  string
}

// spaceWatch is who wants objects of a space, and the watch of it.
type spaceWatch struct {
	wanted int
	stop   context.CancelFunc // nil until Run has started it
}

var (
	errForbidden = errors.New("pilotd may not read it: want a Role that lets it get, list and watch it")
	errAway      = errors.New("the API server does not answer")
)

// maxFetching is how many objects are asked for at once.
const maxFetching = 8

// NewCredentials makes the Source of a server. It does nothing before Run.
func NewCredentials(a *API, log *slog.Logger, tell func(secrets.Object, secrets.Found)) *Credentials {
	return &Credentials{api: a, log: log, tell: tell, wake: make(chan struct{}, 1),
		wanted: map[secrets.Object]*credential{}, due: map[secrets.Object]struct{}{}, spaces: map[space]*spaceWatch{}}
}

// Want implements secrets.Source.
func (c *Credentials) Want(o secrets.Object, yes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := space{o.ConfigMap, o.Namespace}
	s := c.spaces[key]
	if s == nil {
		s = &spaceWatch{}
		c.spaces[key] = s
	}
	if yes {
		s.wanted++
		c.wanted[o] = &credential{}
		c.remind(o)
		return
	}
	delete(c.wanted, o)
	delete(c.due, o)
	if s.wanted--; s.wanted == 0 {
		delete(c.spaces, key)
		if s.stop != nil {
			s.stop()
		}
	}
}

// remind has Run ask for an object. The caller holds mu.
func (c *Credentials) remind(o secrets.Object) {
	w := c.wanted[o]
	switch {
	case w == nil:
		return
	case w.asking:
		w.again = true
		return
	}
	c.due[o] = struct{}{}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Run reads what is wanted until ctx ends.
func (c *Credentials) Run(ctx context.Context) {
	ctx = klog.NewContext(ctx, logr.FromSlogHandler(c.log.Handler())) // what client-go has to say
	var all sync.WaitGroup
	defer all.Wait()
	room := make(chan struct{}, maxFetching)
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		due, watches := c.take(ctx)
		for _, w := range watches {
			all.Go(w)
		}
		for _, o := range due {
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
				return
			}
			all.Go(func() {
				defer func() { <-room }()
				c.fetch(ctx, o)
			})
		}
	}
}

// take returns the objects to ask for, and the watches to start.
func (c *Credentials) take(ctx context.Context) (due []secrets.Object, watches []func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for o := range c.due {
		c.wanted[o].asking = true
		due = append(due, o)
	}
	clear(c.due)
	for key, s := range c.spaces {
		if s.stop == nil {
			var of context.Context
			of, s.stop = context.WithCancel(ctx)
			watches = append(watches, func() { c.watch(of, key) })
		}
	}
	return due, watches
}

// watch follows the names and versions of a space.
func (c *Credentials) watch(ctx context.Context, of space) {
	resource := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	if of.configMaps {
		resource.Resource = "configmaps"
	}
	client := c.api.metadata.Resource(resource).Namespace(of.namespace)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, o)
		},
	}
	changed := func(object any) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		if m, ok := object.(metav1.Object); ok {
			c.changed(secrets.Object{ConfigMap: of.configMaps, Namespace: of.namespace, Name: m.GetName()},
				m.GetResourceVersion())
		}
	}
	i := cache.NewSharedIndexInformer(lw, &metav1.PartialObjectMetadata{}, 0, nil)
	// None fails before the informer runs.
	_ = i.SetTransform(func(object any) (any, error) {
		if m, ok := object.(*metav1.PartialObjectMetadata); ok {
			object = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name,
				ResourceVersion: m.ResourceVersion}}
		}
		return object, nil
	})
	_, _ = i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: changed,
		UpdateFunc: func(_, now any) { changed(now) }, DeleteFunc: func(was any) { changed(was) }})
	_ = i.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		c.log.Warn("objects that gateways ask for cannot be watched; it is tried again", "resource", resource.Resource,
			"namespace", of.namespace, "error", err)
	})
	i.RunWithContext(ctx)
}

// changed notes that an object has another version, or is gone: then its version is the last that it had.
func (c *Credentials) changed(o secrets.Object, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.wanted[o]; w != nil && (w.version != version || !w.told || w.asking) {
		c.remind(o)
	}
}

// fetch asks for an object and tells what it has. While the server cannot say, what was told before holds on.
func (c *Credentials) fetch(ctx context.Context, o secrets.Object) {
	data, version, err := c.api.credential(ctx, o)
	found := secrets.Found{}
	switch {
	case apierrors.IsNotFound(err):
		version, err = "", nil
	case apierrors.IsForbidden(err):
		found.Err = errForbidden
	case err != nil:
		found.Err = errAway
	default:
		found.Material = secrets.Read(data)
	}
	c.mu.Lock()
	w := c.wanted[o]
	if w == nil {
		c.mu.Unlock()
		return
	}
	silent := err != nil && w.told
	w.told, w.asking = true, false
	if err == nil {
		w.version = version
	}
	if w.again {
		w.again = false
		c.remind(o)
	}
	c.mu.Unlock()
	if !silent {
		c.tell(o, found)
	}
	if err != nil {
		time.AfterFunc(retry, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.remind(o)
		})
	}
}

// credential returns what an object has, and its version.
func (a *API) credential(ctx context.Context, o secrets.Object) (secrets.Data, string, error) {
	ctx, cancel := context.WithTimeout(ctx, retry)
	defer cancel()
	if !o.ConfigMap {
		s, err := a.core.Secrets(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
		if err != nil {
			return nil, "", err
		}
		return s.Data, s.ResourceVersion, nil
	}
	m, err := a.core.ConfigMaps(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return nil, "", err
	}
	data := secrets.Data{}
	for k, v := range m.Data {
		data[k] = []byte(v)
	}
	return data, m.ResourceVersion, nil
}

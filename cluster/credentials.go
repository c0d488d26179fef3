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

// MayListSecrets asks the API server whether a service account may list the Secrets of its namespace. It implements
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

// Credentials reads the Secrets and ConfigMaps that are wanted. In their namespaces it watches only the names and
// versions of objects, and gets the content of wanted objects by name. It implements secrets.Source.
type Credentials struct {
	// Immutable after NewCredentials.
	api  *API
	log  *slog.Logger
	tell func(secrets.Object, secrets.Found)
	wake chan struct{}

	mu sync.Mutex
	// Guarded by mu.
	wanted map[secrets.Object]*credential
	due    map[secrets.Object]struct{} // to be fetched
	spaces map[space]*spaceWatch
}

// credential is the state of an object that is wanted.
type credential struct {
	version string // the resourceVersion that was last passed on
	told    bool   // its content, or its absence, was passed on
	asking  bool
	again   bool // it has changed during the fetch
}

// space identifies the Secrets or the ConfigMaps of a namespace.
type space struct {
	configMaps bool
	namespace  string
}

// spaceWatch is the watch of a space, and how many wanted objects are in it.
type spaceWatch struct {
	wanted int
	stop   context.CancelFunc // nil until Run has started it
}

var (
	errForbidden = errors.New("pilotd may not read it: want a Role that lets it get, list and watch it")
	errAway      = errors.New("the API server does not answer")
)

// maxFetching is how many objects are fetched at the same time.
const maxFetching = 8

// NewCredentials makes the Source for an API server. It does nothing before Run.
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

// remind makes Run fetch an object. The caller holds mu.
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

// Run reads the wanted objects until ctx ends.
func (c *Credentials) Run(ctx context.Context) {
	ctx = klog.NewContext(ctx, logr.FromSlogHandler(c.log.Handler())) // the log of client-go
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

// take returns the objects to fetch, and functions that run the watches to start.
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

// watch watches the names and versions of a space.
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
	// Neither call fails before the informer runs.
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

// changed records that an object has a new version, or is gone: then version is the last one it had.
func (c *Credentials) changed(o secrets.Object, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.wanted[o]; w != nil && (w.version != version || !w.told || w.asking) {
		c.remind(o)
	}
}

// fetch gets an object and passes its content on. If the server cannot answer, what was passed on before stays valid.
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

// credential gets the content of an object, and its version.
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

package kube

import (
	"cmp"
	"context"
	"fmt"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// kind says how to request and read the objects of one kind. Immutable.
type kind struct {
	*ingest.Kind
	// source is the name of the source; cluster is the cluster id in keys.
	source, cluster string
	// resource names the kind in messages: its plural, with the group if pilotd does not serve it.
	resource string
	list     func() runtime.Object
	// namespace and fields restrict the request.
	namespace, fields string
	// revision is the revision whose objects are read, of a kind with a CRD.
	revision string
	// read returns what an event carries of an object that was just decoded and that the caller owns alone.
	read func(any) (any, *ingest.Rejection)
	need
}

// scope holds the options that restrict a source.
type scope struct {
	source, cluster                string
	namespace, root, meshConfigMap string
	revision                       string
	meshElsewhere                  bool
}

// mesh returns how necessary the mesh configuration is. pilotd waits for it, because the defaults may allow what it
// forbids, unless another source provides it or the rights to read its namespace are not to be expected.
func (s scope) mesh() need {
	excused := s.meshElsewhere || s.namespace != "" && s.namespace != s.root
	return need{optional: excused, excused: excused,
		loss: "the mesh configuration is that of --meshConfig, or the default one"}
}

func newScope(o Options) scope {
	s := scope{source: sourceName(o), cluster: o.Cluster, namespace: o.Namespace, root: o.RootNamespace,
		meshConfigMap: "istio", revision: o.Revision, meshElsewhere: o.MeshElsewhere}
	if s.root == "" {
		s.root = "istio-system"
	}
	if o.Revision != "" && o.Revision != "default" {
		s.meshConfigMap += "-" + o.Revision
	}
	return s
}

// kindsOf returns the kinds that a source reads: the builtin ones, and by the name of their CRD the custom ones.
func kindsOf(s scope) (builtin []kind, custom map[string]kind) {
	custom = map[string]kind{}
	all := ingest.Kinds()
	for i := range all {
		d := &all[i]
		if d.Aside || d.ForInjection {
			continue
		}
		k := kind{Kind: d, source: s.source, cluster: s.cluster, resource: d.Plural, fields: d.Selector,
			need: need{optional: d.Loss != "", loss: d.Loss, excused: d.Loss != "" && s.namespace != ""}}
		if d.InNamespaces {
			k.namespace = s.namespace
		}
		if d.Builtin {
			k.list, k.read = d.NewList, keeper(d)
			builtin = append(builtin, s.limited(k))
			continue
		}
		k.list, k.read, k.revision = func() runtime.Object { return &unreadList{} }, decoder(d), s.revision
		if d.NotServed != "" {
			k.resource, k.excused = d.CRD(), true
			k.read = func(any) (any, *ingest.Rejection) { return ingest.NotServed{}, nil }
		}
		custom[d.CRD()] = k
	}
	return builtin, custom
}

// limited returns a builtin kind, restricted to the objects that the scope allows.
func (s scope) limited(k kind) kind {
	switch {
	case k.Name == value.KindNamespace && s.namespace != "":
		k.fields = "metadata.name=" + s.namespace
	case k.Name == value.KindMeshConfig:
		k.namespace, k.fields = s.root, "metadata.name="+s.meshConfigMap
		k.read, k.need = readMesh, s.mesh()
	}
	return k
}

// ours reports whether an object is one of those that are read, and not another revision's.
func (k kind) ours(m meta.Object) bool {
	return k.Builtin || ingest.OfRevision(m.GetLabels(), k.revision)
}

// key returns the key of an object of this kind.
func (k kind) key(m meta.Object) value.ObjectKey {
	key := k.Key(m.GetNamespace(), m.GetName())
	key.Cluster = k.cluster
	return key
}

// page is how many objects each page of a list has.
const page = 500

// maxPages bounds the pages of a list: two million objects.
const maxPages = 4000

// requests returns the list and watch functions of the kind's reflector. Lists are for servers that cannot stream the
// initial state. A list is read in pages, and each is reduced before the next is requested. It asks for the newest
// state, because servers page nothing else.
func (k kind) requests(c rest.Interface, s *Source) (cache.ListWithContextFunc, cache.WatchFuncWithContext) {
	request := func(o *meta.ListOptions) *rest.Request {
		o.FieldSelector = k.fields
		return c.Get().NamespaceIfScoped(k.namespace, k.namespace != "").Resource(k.Plural).VersionedParams(o,
			meta.ParameterCodec)
	}
	pages := 0
	list := func(ctx context.Context, o meta.ListOptions) (runtime.Object, error) {
		if pages++; o.Continue == "" {
			pages = 1
		}
		if pages > maxPages {
			return nil, fmt.Errorf("the list of %s does not end: %d pages of %d objects came", k.resource, maxPages,
				page)
		}
		o.ResourceVersion, o.ResourceVersionMatch, o.Limit = "", "", cmp.Or(o.Limit, page)
		found, result := k.list(), request(&o).Do(ctx)
		s.outbox.progressed(k.resource)
		if err := result.Error(); err != nil {
			return nil, err
		}
		if err := result.Into(found); err != nil {
			if all, ok := k.arriveEach(result, s); ok {
				return all, nil
			}
			return nil, err
		}
		return k.arriveAll(found, s)
	}
	follow := func(ctx context.Context, o meta.ListOptions) (watch.Interface, error) {
		o.Watch = true
		return request(&o).Watch(ctx)
	}
	return list, follow
}

// keeper returns the kind.read of a builtin kind, for one reflector.
func keeper(k *ingest.Kind) func(any) (any, *ingest.Rejection) {
	var s ingest.Stripper
	return func(o any) (any, *ingest.Rejection) {
		o = whole(o)
		if object, ok := o.(ingest.Object); ok && k.Keep != nil {
			k.Keep(object)
		}
		return k.Strip(&s, o), nil
	}
}

// readMesh returns the mesh configuration in a ConfigMap.
func readMesh(o any) (any, *ingest.Rejection) {
	c, ok := o.(*core.ConfigMap)
	if !ok {
		return o, nil
	}
	text, ok := c.Data[ingest.MeshName]
	if !ok {
		return nil, &ingest.Rejection{Field: "data.mesh", Reason: "is missing in ConfigMap " + c.Name +
			": expected a MeshConfig in YAML"}
	}
	return text, nil
}

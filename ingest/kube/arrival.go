package kube

import (
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/snapshot/value"
)

// arrival is an object between the API server and the sink: the part of it that pilotd uses, or why it is refused, or
// that it belongs to another revision (others), which counts as gone. It implements client-go's object interface,
// because client-go holds the objects of the first list until all of them are there. Immutable.
type arrival struct {
	key    value.ObjectKey
	object any
	bad    *ingest.Rejection
	others bool
}

// GetObjectMeta returns the names by which client-go identifies the object.
func (a *arrival) GetObjectMeta() meta.Object {
	return &meta.ObjectMeta{Namespace: a.key.Namespace, Name: a.key.Name}
}

// GetObjectKind returns nothing, because nothing calls it for its result.
func (a *arrival) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns the arrival itself, which never changes.
func (a *arrival) DeepCopyObject() runtime.Object { return a }

// arrivals is a page of a list.
type arrivals struct {
	meta.TypeMeta
	meta.ListMeta
	Items []*arrival
}

// DeepCopyObject implements runtime.Object.
func (l *arrivals) DeepCopyObject() runtime.Object {
	c := *l
	return &c // the items are shared, because nothing writes them
}

// container converts panics to errors. Source implements it.
type container interface {
	panicked(unit string, cause any) error
}

// arrive converts an object that was just decoded. If that panics, only this object is refused.
func (k kind) arrive(o any, c container) (*arrival, error) {
	if a, ok := o.(*arrival); ok {
		return a, nil
	}
	m, err := accessor(o)
	if err != nil {
		return nil, err
	}
	a := &arrival{key: k.key(m), others: !k.ours(m)}
	if a.others {
		return a, nil
	}
	if a.object, a.bad = k.contained(o, a.key, c); a.bad != nil {
		a.bad.Source, a.bad.Key = k.source, a.key
	}
	return a, nil
}

func (k kind) contained(o any, key value.ObjectKey, c container) (object any, bad *ingest.Rejection) {
	defer func() {
		if cause := recover(); cause != nil {
			object, bad = nil, &ingest.Rejection{Cause: report.Panicked,
				Reason: c.panicked(key.String(), cause).Error()}
		}
	}()
	return k.read(o)
}

// arriveAll converts a list that was just decoded.
func (k kind) arriveAll(list runtime.Object, c container) (runtime.Object, error) {
	m, err := apimeta.ListAccessor(list)
	if err != nil {
		return nil, fmt.Errorf("kube: %T is no list: %w", list, err)
	}
	out := newArrivals(m.GetResourceVersion(), m.GetContinue(), apimeta.LenList(list))
	return out, apimeta.EachListItem(list, func(o runtime.Object) error {
		a, err := k.arrive(o, c)
		out.Items = append(out.Items, a)
		return err
	})
}

func newArrivals(version, next string, size int) *arrivals {
	return &arrivals{ListMeta: meta.ListMeta{ResourceVersion: version, Continue: next},
		Items: make([]*arrival, 0, size)}
}

func accessor(o any) (meta.Object, error) {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	m, ok := o.(meta.Object)
	if !ok {
		return nil, fmt.Errorf("kube: %T is no object", o)
	}
	return m, nil
}

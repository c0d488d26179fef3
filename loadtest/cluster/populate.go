package cluster

import (
	"context"
	"fmt"
	"iter"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pilotd/pilotd/loadtest/mesh"
)

// The ConfigMap with the shape.
const (
	homeNamespace = "loadtest"
	shapeName     = "shape"
	shapeKey      = "shape.yaml"
)

// Populate makes the mesh in the API server that of a shape, and removes what an earlier Populate wrote for another
// mesh.
func Populate(ctx context.Context, o Options, s mesh.Shape) (Progress, error) {
	a, err := connect(o)
	if err != nil {
		return Progress{}, err
	}
	if err := a.define(ctx, o.CRDs); err != nil {
		return Progress{}, err
	}
	present, err := a.inventory(ctx, label)
	if err != nil {
		return Progress{}, err
	}
	m := mesh.New(s)
	work := newSyncer(a, o.Workers, present, isLive(m))
	work.progress.Total = count(objects(m, s)) + 1
	home, err := shapeObject(s)
	if err != nil {
		return Progress{}, err
	}
	err = work.watched(ctx, o.Progress, func(ctx context.Context) error {
		if err := work.put(ctx, objects(m, s)); err != nil {
			return err
		}
		// Last, so that nobody finds the shape of an incomplete mesh.
		if err := work.put(ctx, func(yield func(mesh.Object) bool) { yield(home) }); err != nil {
			return err
		}
		return work.removeRest(ctx)
	})
	return work.state(), err
}

// Delete removes everything that load tests created in the API server.
func Delete(ctx context.Context, o Options) (Progress, error) {
	a, err := connect(o)
	if err != nil {
		return Progress{}, err
	}
	present, err := a.inventory(ctx, label)
	if err != nil {
		return Progress{}, err
	}
	work := newSyncer(a, o.Workers, present, func(mesh.Object) bool { return false })
	for _, k := range kinds() {
		work.progress.Total += len(present[k.name])
	}
	err = work.watched(ctx, o.Progress, work.removeRest)
	if err == nil {
		err = a.undefine(ctx)
	}
	return work.state(), err
}

// watched runs act, and calls tell with the progress every second.
func (s *syncer) watched(ctx context.Context, tell func(Progress), act func(context.Context) error) error {
	if tell == nil {
		return act(ctx)
	}
	done := make(chan error, 1)
	go func() { done <- act(ctx) }()
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-every.C:
			tell(s.state())
		}
	}
}

// objects yields the objects of a mesh as they are in a cluster.
func objects(m *mesh.Mesh, s mesh.Shape) iter.Seq[mesh.Object] {
	return func(yield func(mesh.Object) bool) {
		if !yield(dress(&corev1.Namespace{TypeMeta: typeMeta("Namespace"),
			ObjectMeta: metav1.ObjectMeta{Name: homeNamespace}})) {
			return
		}
		for o := range m.Objects() {
			if service, ok := o.(*corev1.Service); ok {
				account := &corev1.ServiceAccount{TypeMeta: typeMeta("ServiceAccount"),
					ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name}}
				if !yield(account) {
					return
				}
			}
			if !yield(dress(o)) {
				return
			}
		}
	}
}

func count(objects iter.Seq[mesh.Object]) (n int) {
	for range objects {
		n++
	}
	return n
}

// isLive returns a function that tells which objects edits change.
func isLive(m *mesh.Mesh) func(mesh.Object) bool {
	type key struct {
		kind string
		name name
	}
	live := map[key]bool{}
	for o := range m.Live().Objects() {
		live[key{kindOf(o), nameOf(o)}] = true
	}
	return func(o mesh.Object) bool { return live[key{kindOf(o), nameOf(o)}] }
}

func typeMeta(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }

// shapeObject returns the ConfigMap with the shape.
func shapeObject(s mesh.Shape) (*corev1.ConfigMap, error) {
	text, err := yaml.Marshal(s)
	return &corev1.ConfigMap{TypeMeta: typeMeta("ConfigMap"), ObjectMeta: metav1.ObjectMeta{Namespace: homeNamespace,
		Name: shapeName},
		Data: map[string]string{shapeKey: string(text)}}, err
}

// shape returns the shape of the mesh in the API server.
func (a *api) shape(ctx context.Context) (mesh.Shape, error) {
	var o corev1.ConfigMap
	err := a.clients[corev1.SchemeGroupVersion].Get().Namespace(homeNamespace).Resource("configmaps").Name(shapeName).Do(
		ctx).Into(&o)
	if apierrors.IsNotFound(err) {
		return mesh.Shape{}, fmt.Errorf("the API server has no mesh of a load test: populate it first")
	}
	if err != nil {
		return mesh.Shape{}, err
	}
	return mesh.Parse(fmt.Sprintf("ConfigMap %s/%s", homeNamespace, shapeName), []byte(o.Data[shapeKey]))
}

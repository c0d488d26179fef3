package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A deleted namespace disappears once a controller has emptied it. These are the intervals of waiting for that when no
// controller runs.
const (
	controllerPatience = 3 * time.Second
	namespacePatience  = 2 * time.Minute
)

// finalize waits until a deleted namespace, whose objects are gone, is gone too. If no controller runs, finalize
// releases it itself.
func (a *api) finalize(ctx context.Context, name string) error {
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for began := time.Now(); ; {
		var ns corev1.Namespace
		err := a.clients[corev1.SchemeGroupVersion].Get().Resource("namespaces").Name(name).Do(ctx).Into(&ns)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("namespace %s: %w", name, err)
		case len(ns.Status.Conditions) == 0 && time.Since(began) > controllerPatience:
			return a.letGo(ctx, &ns)
		case time.Since(began) > namespacePatience:
			return fmt.Errorf("namespace %s does not end: %s", name, conditions(&ns))
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// letGo removes the namespace's finalizer.
func (a *api) letGo(ctx context.Context, ns *corev1.Namespace) error {
	ns.Spec.Finalizers = nil
	text, err := json.Marshal(ns)
	if err != nil {
		return err
	}
	err = a.raw.Put().AbsPath("/api/v1/namespaces", ns.Name, "finalize").SetHeader("Content-Type",
		"application/json").Body(text).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func conditions(ns *corev1.Namespace) (out string) {
	for _, c := range ns.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			out += c.Message + " "
		}
	}
	return out
}

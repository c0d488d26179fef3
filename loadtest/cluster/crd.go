package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

func definitionsResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
}

// define creates those CRDs of Istio's kinds that the server lacks, and waits until it serves all kinds that are
// written.
func (a *api) define(ctx context.Context, file string) error {
	definitions, err := definitions(file)
	if err != nil {
		return err
	}
	for _, d := range definitions {
		if err := a.defineOne(ctx, d); err != nil {
			return fmt.Errorf("definition %s: %w", d.GetName(), err)
		}
	}
	return a.served(ctx)
}

// defineOne creates a CRD unless it exists. If it is being deleted, defineOne waits for the end of that.
func (a *api) defineOne(ctx context.Context, d *unstructured.Unstructured) error {
	got, err := a.metadata.Resource(definitionsResource()).Get(ctx, d.GetName(), metav1.GetOptions{})
	if err == nil && got.DeletionTimestamp == nil {
		return nil
	}
	if err == nil {
		err = a.gone(ctx, d.GetName())
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	labels := map[string]string{label: still}
	for k, v := range d.GetLabels() {
		labels[k] = v
	}
	d.SetLabels(labels)
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	err = a.raw.Post().AbsPath(definitionsPath).SetHeader("Content-Type", "application/json").Body(text).Do(ctx).Error()
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// gone waits until a deleted CRD no longer exists: the server deletes its objects first.
func (a *api) gone(ctx context.Context, name string) error {
	return poll(ctx, func() (bool, error) {
		_, err := a.metadata.Resource(definitionsResource()).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}

// poll calls ask until it returns true, or patience ends.
func poll(ctx context.Context, ask func() (bool, error)) error {
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for began := time.Now(); ; {
		done, err := ask()
		if done || err != nil {
			return err
		}
		if time.Since(began) > servedPatience {
			return errPatience
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// errPatience reports that something took too long.
var errPatience = errors.New("the API server takes too long")

// servedPatience bounds how long a server may take to serve a new kind, or to stop serving it.
const servedPatience = time.Minute

// served waits until the server serves all of Istio's kinds.
func (a *api) served(ctx context.Context) error {
	for _, k := range kinds() {
		if k.defined() == "" {
			continue
		}
		err := poll(ctx, func() (bool, error) {
			_, err := a.metadata.Resource(k.gvr()).List(ctx, metav1.ListOptions{Limit: 1})
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			return err == nil, err
		})
		if err != nil {
			return fmt.Errorf("the API server does not serve %s in %s: %w", k.resource, k.group, err)
		}
	}
	return nil
}

// definitions returns the CRDs of a file for the kinds that are written, or CRDs of our own.
func definitions(file string) ([]*unstructured.Unstructured, error) {
	if file == "" {
		return ownDefinitions(), nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		d := &unstructured.Unstructured{}
		err := documents.Decode(&d.Object)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if d.GetKind() == "CustomResourceDefinition" &&
			slices.ContainsFunc(kinds(), func(k kind) bool { return k.defined() == d.GetName() }) {
			out = append(out, d)
		}
	}
}

// ownDefinitions returns CRDs that accept any content, which suffices to store Istio's objects without Istio.
func ownDefinitions() (out []*unstructured.Unstructured) {
	for _, k := range kinds() {
		if k.defined() != "" {
			out = append(out, k.definition())
		}
	}
	return out
}

func (k kind) definition() *unstructured.Unstructured {
	var versions []any
	for _, v := range []string{"v1", "v1beta1", "v1alpha3"} {
		versions = append(versions, map[string]any{
			"name": v, "served": true, "storage": v == k.group.Version,
			"subresources": map[string]any{"status": map[string]any{}},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
				"spec":   map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
				"status": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": k.defined()},
		"spec": map[string]any{
			"group": k.group.Group, "scope": "Namespaced", "versions": versions,
			"names": map[string]any{"kind": k.name, "listKind": k.name + "List", "plural": k.resource,
				"singular": strings.ToLower(k.name)},
		},
	}}
}

// undefine deletes the CRDs that a load test created, unless there are other objects of their kinds.
func (a *api) undefine(ctx context.Context) error {
	r := a.metadata.Resource(definitionsResource())
	found, err := r.List(ctx, metav1.ListOptions{LabelSelector: label})
	if err != nil {
		return fmt.Errorf("definitions: %w", err)
	}
	ours := map[string]bool{}
	for i := range found.Items {
		ours[found.Items[i].Name] = true
	}
	var gone []string
	for _, k := range kinds() {
		if !ours[k.defined()] {
			continue
		}
		if left, err := a.list(ctx, k, metav1.ListOptions{}); err != nil || len(left) > 0 {
			if err != nil {
				return err
			}
			continue
		}
		if err := r.Delete(ctx, k.defined(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("definition %s: %w", k.defined(), err)
		}
		gone = append(gone, k.defined())
	}
	for _, name := range gone {
		if err := a.gone(ctx, name); err != nil {
			return fmt.Errorf("definition %s: %w", name, err)
		}
	}
	return nil
}

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	networkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

func definitionsResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

// define makes the definitions of Istio's kinds that the server lacks, and waits until it serves all that are written.
func (a *api) define(ctx context.Context, file string) error {
	definitions, err := definitions(file)
	if err != nil {
		return err
	}
	for _, d := range definitions {
		_, err := a.metadata.Resource(definitionsResource()).Get(ctx, d.GetName(), metav1.GetOptions{})
		if err == nil {
			continue
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("definition %s: %w", d.GetName(), err)
		}
		labels := d.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[label] = still
		d.SetLabels(labels)
		text, err := json.Marshal(d)
		if err != nil {
			return err
		}
		err = a.raw.Post().AbsPath(definitionsPath).SetHeader("Content-Type", "application/json").Body(text).Do(ctx).Error()
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("definition %s: %w", d.GetName(), err)
		}
	}
	return a.served(ctx)
}

// servedPatience is how long a server may take to serve what was defined.
const servedPatience = time.Minute

// served waits until the server serves all of Istio's kinds.
func (a *api) served(ctx context.Context) error {
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	began := time.Now()
	for _, k := range kinds() {
		for k.group == networkingv1.SchemeGroupVersion {
			_, err := a.metadata.Resource(k.gvr()).List(ctx, metav1.ListOptions{Limit: 1})
			if err == nil {
				break
			}
			if !apierrors.IsNotFound(err) || time.Since(began) > servedPatience {
				return fmt.Errorf("the API server does not serve %s in %s: %w", k.resource, k.group, err)
			}
			select {
			case <-every.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// definitions are those of a file, or ones of our own.
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
		if d.GetKind() == "CustomResourceDefinition" {
			out = append(out, d)
		}
	}
}

// ownDefinitions let any content in: enough to store Istio's objects where Istio is not installed.
func ownDefinitions() (out []*unstructured.Unstructured) {
	for _, k := range kinds() {
		if k.group == networkingv1.SchemeGroupVersion {
			out = append(out, k.definition())
		}
	}
	return out
}

func (k kind) definition() *unstructured.Unstructured {
	var versions []any
	for _, v := range []string{"v1", "v1beta1", "v1alpha3"} {
		versions = append(versions, map[string]any{
			"name": v, "served": true, "storage": v == k.group.Version, "subresources": map[string]any{"status": map[string]any{}},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
				"spec":   map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
				"status": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": k.resource + "." + k.group.Group},
		"spec": map[string]any{
			"group": k.group.Group, "scope": "Namespaced", "versions": versions,
			"names": map[string]any{"kind": k.name, "listKind": k.name + "List", "plural": k.resource, "singular": strings.ToLower(k.name)},
		},
	}}
}

// undefine removes the definitions that a load test made.
func (a *api) undefine(ctx context.Context) error {
	r := a.metadata.Resource(definitionsResource())
	found, err := r.List(ctx, metav1.ListOptions{LabelSelector: label})
	if err != nil {
		return fmt.Errorf("definitions: %w", err)
	}
	for i := range found.Items {
		if err := r.Delete(ctx, found.Items[i].Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("definition %s: %w", found.Items[i].Name, err)
		}
	}
	return nil
}

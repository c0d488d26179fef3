package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/loadtest/mesh"
)

const (
	// label is on all objects of a load test; its value says whether edits change the object.
	label = "pilotd.io/loadtest"
	live  = "live"
	still = "still"
	// content is the annotation with a hash of what was written.
	content = "pilotd.io/loadtest-content"
)

// name identifies an object of a kind.
type name struct{ namespace, name string }

func nameOf(o metav1.Object) name { return name{o.GetNamespace(), o.GetName()} }

// state is what the server has of an object.
type state struct{ content, version string }

// inventory is what the server has, by kind.
type inventory map[string]map[name]state

// page is the number of objects in a page of a list.
const page = 5000

// inventory lists all objects of the load test, or only those that edits change.
func (a *api) inventory(ctx context.Context, selector string) (inventory, error) {
	out := inventory{}
	for _, k := range kinds() {
		found, err := a.list(ctx, k, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return nil, err
		}
		if k.status {
			// Objects whose status is missing count as incomplete.
			bare, err := a.list(ctx, k, metav1.ListOptions{LabelSelector: selector,
				FieldSelector: "status.phase!=Running"})
			if err != nil {
				return nil, err
			}
			for n, s := range bare {
				found[n] = state{version: s.version}
			}
		}
		out[k.name] = found
	}
	return out, nil
}

// list returns the objects of a kind; none if the server does not know the kind.
func (a *api) list(ctx context.Context, k kind, o metav1.ListOptions) (map[name]state, error) {
	out := map[name]state{}
	for o.Limit = page; ; {
		l, err := a.metadata.Resource(k.gvr()).List(ctx, o)
		if apierrors.IsNotFound(err) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", k.resource, err)
		}
		for i := range l.Items {
			m := &l.Items[i]
			out[nameOf(m)] = state{m.Annotations[content], m.ResourceVersion}
		}
		if o.Continue = l.Continue; o.Continue == "" {
			return out, nil
		}
	}
}

// sign sets an object's label and content annotation, and returns the latter.
func sign(o mesh.Object, value string) (string, error) {
	labels := map[string]string{label: value}
	for k, v := range o.GetLabels() {
		labels[k] = v
	}
	o.SetLabels(labels)
	text, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	says := hex.EncodeToString(sum[:8])
	annotations := map[string]string{content: says}
	for k, v := range o.GetAnnotations() {
		annotations[k] = v
	}
	o.SetAnnotations(annotations)
	return says, nil
}

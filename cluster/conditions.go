package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// maxEvents is how many Events are created for one object at a time.
	maxEvents = 5
	// maxNote is the longest note of an Event that an API server accepts, maxMessage the longest message of a
	// condition, and maxMessages the number of validationMessages of an object.
	maxNote, maxMessage, maxMessages = 1024, 2048, 20
	// statusManager is the field manager of the conditions that pilotd writes.
	statusManager = "pilotd-status"
	// analyzed is the type of Istio's condition for problems of an object; analysisPages is the address of the pages
	// that explain the codes of validationMessages.
	analyzed      = "PassedAnalysis"
	analysisPages = "https://istio.io/latest/docs/reference/config/analysis/"
)

// each calls list for the versions of a kind, first for the one that is known to be served, until one of them is
// served. A kind that the server does not have has no objects.
func (t *factTeller) each(k *FactKind, list func(schema.GroupVersionResource) error) error {
	versions := k.Versions
	if v := t.version[k]; v != "" {
		versions = append([]string{v}, versions...)
	}
	for _, v := range versions {
		err := list(schema.GroupVersionResource{Group: k.Group, Version: v, Resource: k.Plural})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err == nil {
			t.version[k] = v
		}
		return err
	}
	return nil
}

// read returns an object, or nil if it is gone; only its metadata unless pilotd writes its conditions. It uses list,
// because pilotd has that right already for reading configuration.
func (t *factTeller) read(ctx context.Context, o FactObject) (found metav1.Object, err error) {
	only := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", o.Name).String()}
	err = t.each(o.Kind, func(r schema.GroupVersionResource) error {
		if t.o.Conditions && o.Kind.Conditions {
			list, err := t.api.dynamic.Resource(r).Namespace(o.Namespace).List(ctx, only)
			if err == nil && len(list.Items) > 0 {
				found = &list.Items[0]
			}
			return err
		}
		list, err := t.api.metadata.Resource(r).Namespace(o.Namespace).List(ctx, only)
		if err == nil && len(list.Items) > 0 {
			found = &list.Items[0]
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o, err)
	}
	return found, nil
}

// isAnalyzed reports whether a condition has the type that pilotd writes. No one else writes it: current versions of
// istiod, which introduced it, no longer do.
func isAnalyzed(condition any) bool {
	c, _ := condition.(map[string]any)
	return c["type"] == analyzed
}

// findOld finds the objects that have a condition of an earlier leader.
func (t *factTeller) findOld(ctx context.Context) error {
	for _, k := range t.o.Kinds {
		if !k.Conditions {
			continue
		}
		if err := t.each(k, func(r schema.GroupVersionResource) error {
			for page := (metav1.ListOptions{Limit: 500}); ; {
				list, err := t.api.dynamic.Resource(r).List(ctx, page)
				if err != nil {
					return err
				}
				for _, o := range list.Items {
					conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
					if slices.ContainsFunc(conditions, isAnalyzed) {
						t.told[FactObject{k, o.GetNamespace(), o.GetName()}] = 0
					}
				}
				if page.Continue = list.GetContinue(); page.Continue == "" {
					return nil
				}
			}
		}); err != nil {
			return fmt.Errorf("%s: %w", k.Plural, err)
		}
	}
	return nil
}

// event creates an Event for a fact. Its name is derived from the fact and the object's generation, so that a fact that
// comes and goes, or is told again by the next leader, is a single Event for as long as the API server keeps it.
func (t *factTeller) event(ctx context.Context, o FactObject, object metav1.Object, f Fact) error {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n%s\n%s", object.GetUID(), object.GetGeneration(), f.Reason, f.Note))
	namespace := cmp.Or(o.Namespace, metav1.NamespaceDefault)
	gv := schema.GroupVersion{Group: o.Kind.Group, Version: t.version[o.Kind]}
	_, err := t.api.events.Events(namespace).Create(ctx, &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
			Name: strings.TrimRight(cutText(o.Name, 200), ".-…") + "." + hex.EncodeToString(sum[:8])},
		EventTime: metav1.NewMicroTime(t.o.Clock()), ReportingController: "pilotd",
		ReportingInstance: cutText(t.o.Instance, 128), Action: "Read", Reason: f.Reason, Type: corev1.EventTypeWarning,
		Note: cutText(f.Note, maxNote),
		Regarding: corev1.ObjectReference{APIVersion: gv.String(), Kind: o.Kind.Name, Namespace: o.Namespace,
			Name: o.Name, UID: object.GetUID(), ResourceVersion: object.GetResourceVersion()},
	}, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), // or the namespace has been deleted
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil
	case err != nil:
		return fmt.Errorf("an Event of %s: %w", o, err)
	}
	return nil
}

// cutText returns the beginning of s that has at most most bytes.
func cutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len("…")], "") + "…"
}

// condition writes the facts into the status of an object, or removes what was written there: the condition
// PassedAnalysis and the validationMessages. It keeps other conditions, and writes only if the object still has the
// version that was read.
func (t *factTeller) condition(ctx context.Context, o FactObject, object metav1.Object, facts []Fact) error {
	u := object.(*unstructured.Unstructured)
	before, _, _ := unstructured.NestedMap(u.Object, "status")
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	since := t.o.Clock().UTC().Format("2006-01-02T15:04:05Z")
	conditions = slices.DeleteFunc(conditions, func(c any) bool {
		if !isAnalyzed(c) {
			return false
		}
		if was, ok := c.(map[string]any)["lastTransitionTime"].(string); ok {
			since = was
		}
		return true
	})
	if len(facts) > 0 {
		conditions = append(conditions, map[string]any{"type": analyzed, "status": "False",
			"reason": reasonOf(facts), "message": messageOf(facts), "lastTransitionTime": since})
	}
	status := map[string]any{"conditions": conditions, "validationMessages": validationMessages(facts)}
	for field, list := range status {
		if n, _ := list.([]any); len(n) == 0 {
			status[field] = nil // in a merge patch, null removes the field
			if _, has := before[field]; !has {
				delete(status, field)
			}
		}
	}
	if len(status) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": u.GetResourceVersion()},
		"status": status})
	if err != nil {
		return err
	}
	r := schema.GroupVersionResource{Group: o.Kind.Group, Version: t.version[o.Kind], Resource: o.Kind.Plural}
	if _, err = t.api.dynamic.Resource(r).Namespace(o.Namespace).Patch(ctx, o.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: statusManager}, "status"); err != nil {
		return fmt.Errorf("the status of %s: %w", o, err)
	}
	return nil
}

// reasonOf returns the reason field of a condition.
func reasonOf(facts []Fact) string {
	if slices.ContainsFunc(facts, func(f Fact) bool { return f.Severe }) {
		return "errorsFound"
	}
	return "warningsFound"
}

// messageOf returns the message of a condition, with one fact in each line.
func messageOf(facts []Fact) string {
	lines := make([]string, 0, len(facts))
	for _, f := range facts {
		lines = append(lines, f.Reason+": "+f.Note)
	}
	return cutText(strings.Join(lines, "\n"), maxMessage)
}

// validationMessages returns a message for each fact that has a code of Istio's analyzers.
func validationMessages(facts []Fact) (out []any) {
	for _, f := range facts {
		if f.Code == "" || len(out) == maxMessages {
			continue
		}
		level := "WARNING"
		if f.Severe {
			level = "ERROR"
		}
		out = append(out, map[string]any{"type": map[string]any{"name": f.Type, "code": f.Code}, "level": level,
			"documentationUrl": analysisPages + strings.ToLower(f.Code) + "/"})
	}
	return out
}

package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pilotd/pilotd/e2e/parts"
)

const ruleCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rules.facts.istio.io, annotations: {api-approved.kubernetes.io: "unapproved, for a test"}}
spec:
  group: facts.istio.io
  scope: Namespaced
  names: {plural: rules, kind: Rule}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// wrongs are what is wrong, for a teller to read.
type wrongs struct {
	mu      sync.Mutex
	now     map[FactObject][]Fact
	changes uint64
	asked   atomic.Int32
}

func (w *wrongs) set(now map[FactObject][]Fact) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now, w.changes = now, w.changes+1
}

// tell runs a teller until stop is called.
func (w *wrongs) tell(t *testing.T, a *API, kinds ...*FactKind) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.TellFacts(ctx, Facts{Kinds: kinds, Instance: "pilotd-0", Events: true, Conditions: true,
			Every: 20 * time.Millisecond, Clock: time.Now, Log: slog.New(slog.DiscardHandler),
			Now: func() map[FactObject][]Fact {
				w.asked.Add(1)
				w.mu.Lock()
				defer w.mu.Unlock()
				return w.now
			},
			Changes: func() uint64 {
				w.mu.Lock()
				defer w.mu.Unlock()
				return w.changes
			}})
	}()
	return func() {
		cancel()
		<-ended
	}
}

// testFacts has a real API server told of objects: by Events, once for each fact, and by conditions beside those of
// others, which the next leader takes back.
func testFacts(t *testing.T, a *API, server *parts.APIServer) {
	in := parts.NewBareCluster(t, server)
	in.Apply(ruleCRD)
	rules := a.dynamic.Resource(schema.GroupVersionResource{Group: "facts.istio.io", Version: "v1", Resource: "rules"})
	parts.Eventually(t, "there are rules", func() error {
		_, err := rules.Namespace("shop").Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "facts.istio.io/v1", "kind": "Rule", "metadata": map[string]any{"name": "a"}}},
			metav1.CreateOptions{})
		return err
	})
	if _, err := rules.Namespace("shop").Patch(t.Context(), "a", types.MergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"Mine","status":"True"}],"addresses":["10.0.0.1"]}}`),
		metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	// A version that is not served comes before the one that is.
	rule := &FactKind{Group: "facts.istio.io", Name: "Rule", Plural: "rules", Versions: []string{"v2", "v1"},
		Conditions: true}
	gone := &FactKind{Group: "gone.istio.io", Name: "Gone", Plural: "gones", Versions: []string{"v1"}, Conditions: true}
	namespace := &FactKind{Name: "Namespace", Plural: "namespaces", Versions: []string{"v1"}}
	object := FactObject{rule, "shop", "a"}
	is := func(want string) {
		t.Helper()
		parts.Eventually(t, "the status is "+want, func() error {
			o, err := rules.Namespace("shop").Get(t.Context(), "a", metav1.GetOptions{})
			if err != nil {
				return err
			}
			status, _, _ := unstructured.NestedMap(o.Object, "status")
			if text := fmt.Sprint(status); !strings.Contains(text, want) || !strings.Contains(text, "type:Mine") ||
				!strings.Contains(text, "10.0.0.1") || want == "conditions:[map[status:True type:Mine]]" &&
				strings.Contains(text, "validationMessages") {
				return fmt.Errorf("it is %s", text)
			}
			return nil
		})
	}
	events := func() (out []string) {
		list, err := a.events.Events("").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Items {
			if e.ReportingController == "pilotd" {
				out = append(out, e.Namespace+" "+e.Regarding.Kind+"/"+e.Regarding.Name+" "+e.Reason+": "+e.Note)
			}
		}
		return out
	}
	w := &wrongs{}
	bad := Fact{Reason: "Refused", Note: "spec.x: " + strings.Repeat("ä", maxNote), Code: "IST0106", Severe: true}
	facts := map[FactObject][]Fact{object: {bad}, {rule, "shop", "deleted"}: {bad}, {gone, "shop", "x"}: {bad},
		{namespace, "", "shop"}: {{Reason: "NotServed", Note: "metadata"}}}
	w.set(facts)
	stop := w.tell(t, a, rule, gone, namespace)
	is("errorsFound")
	parts.Eventually(t, "there are Events", func() error {
		if got := events(); len(got) != 2 {
			return fmt.Errorf("%.200q", got)
		}
		return nil
	})
	stop()
	// The next leader knows of the condition, and tells nothing twice.
	stop = w.tell(t, a, rule, gone, namespace)
	w.set(map[FactObject][]Fact{object: {{Reason: "Unresolved", Note: "b"}}})
	is("warningsFound")
	w.set(facts)
	is("errorsFound")
	stop()
	w.set(nil)
	stop = w.tell(t, a, rule, gone, namespace)
	is("conditions:[map[status:True type:Mine]]")
	stop()
	if got := events(); len(got) != 3 {
		t.Errorf("%d Events: %.300q", len(got), got)
	}
}

// testManyFacts has more wrong than may be told at once: what is told in a time is bounded, and nothing is looked for
// while nothing changes.
func testManyFacts(t *testing.T, a *API) {
	namespaces := &FactKind{Name: "Namespace", Plural: "namespaces", Versions: []string{"v1"}}
	now := map[FactObject][]Fact{}
	for i := range 4 * factBurst {
		now[FactObject{namespaces, "", fmt.Sprint("none-", i)}] = []Fact{{Reason: "NotServed", Note: "x"}}
	}
	w := &wrongs{}
	w.set(now)
	began := time.Now()
	stop := w.tell(t, a, namespaces)
	parts.Eventually(t, "some are told of", func() error {
		if w.asked.Load() < 2 {
			return fmt.Errorf("it was looked %d times", w.asked.Load())
		}
		return nil
	})
	stop()
	if most := int32(2 + (factBurst+int(time.Since(began).Seconds()*factRate))/factPass); w.asked.Load() > most {
		t.Errorf("in %v it was looked %d times, at most %d", time.Since(began), w.asked.Load(), most)
	}
	quiet := &wrongs{}
	stop = quiet.tell(t, a)
	parts.Eventually(t, "it is looked", func() error {
		if quiet.asked.Load() == 0 {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	stop()
	if n := quiet.asked.Load(); n != 1 {
		t.Errorf("without a change it was looked %d times", n)
	}
}

package mesh

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// What edits say they write, written on what was there, is what Live says that there is; whatever edits come. The
// marked write says the number.
func TestEditsAddUpToWhatIsLive(t *testing.T) {
	for _, name := range []string{"everything", "entries"} {
		m := named(t, name)
		for seed := range uint64(5) {
			l, r := m.Live(), rand.New(rand.NewPCG(seed, 1))
			there := contents(t, l.Objects())
			for n := 1; n <= 150; n++ {
				e := Edit{Kind: EditKind(r.IntN(6)), Service: r.IntN(min(m.Lanes(), 4)), Number: n}
				if e.Pods = r.IntN(7); r.IntN(3) == 0 {
					e.Pods = 98 + r.IntN(4) + 100*r.IntN(2)
				}
				before := l.Replicas(e.Service)
				e.Pod = r.IntN(max(before, 1))
				c, err := l.Edit(e)
				if err != nil {
					if e.Kind == RemoveRoute || e.Kind == Replace && before == 0 {
						continue
					}
					t.Fatal(err)
				}
				apply(t, there, c)
				if says(e, before) && !strings.Contains(marked(t, c), text(e)) {
					t.Fatalf("%+v: the write at the mark does not say the number: %s", e, marked(t, c))
				}
			}
			compare(t, there, contents(t, l.Objects()))
		}
	}
}

// apply makes the writes of a change. What is deleted must be there.
func apply(t *testing.T, there map[string][]byte, c Change) {
	t.Helper()
	for _, w := range c.Writes {
		k := key(w.Object)
		if w.Delete {
			if there[k] == nil {
				t.Errorf("%s is deleted, and is not there", k)
			}
			delete(there, k)
			continue
		}
		text, err := json.Marshal(w.Object)
		must(t, err)
		there[k] = text
	}
}

// says reports whether an edit of a service of so many pods says its number.
func says(e Edit, before int) bool {
	return e.Kind != RemoveRoute && (e.Kind != Scale || e.Pods > before)
}

func text(e Edit) string {
	if e.Kind == Route || e.Kind == AddRoute {
		return Path(e.Number)
	}
	return Address(e.Number)
}

func marked(t *testing.T, c Change) string {
	t.Helper()
	text, err := json.Marshal(c.Writes[c.Mark].Object)
	must(t, err)
	return string(text)
}

func TestEditsThatCannotBeSaySo(t *testing.T) {
	l := named(t, "small").Live()
	all := New(Shape{Namespaces: 1, Services: 2, Pods: 1, VirtualServices: 1}).Live()
	for _, c := range []struct {
		live *Live
		edit Edit
		want string
	}{
		{l, Edit{Kind: Endpoint, Service: 40, Number: 1}, "endpoint: service 40"},
		{l, Edit{Kind: Route, Number: 0}, "number 0"},
		{l, Edit{Kind: Route, Number: LastMark + 1}, "number"},
		{l, Edit{Kind: Replace, Number: 1, Pod: 2}, "pod 2: the service has 2"},
		{l, Edit{Kind: RemoveRoute, Number: 1}, "none was added"},
		{l, Edit{Kind: Scale, Number: 1, Pods: -1}, "to -1 pods"},
		{all, Edit{Kind: AddRoute, Number: 1}, "every service"},
	} {
		if _, err := c.live.Edit(c.edit); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.edit, err, c.want)
		}
	}
}

// recorder is a Writer.
type recorder struct{ changes []Change }

func (r *recorder) Write(c Change) (time.Time, error) {
	r.changes = append(r.changes, c)
	return time.Unix(int64(len(r.changes)), 0), nil
}

// A replaced workload's sidecar says of itself what its new pod says.
func TestSuccessorsAreTheirPods(t *testing.T) {
	m, r := named(t, "small"), &recorder{}
	e := NewEditor(m, r)
	for n, edit := range []func() (time.Time, error){
		func() (time.Time, error) { return e.Endpoint(1, 1) }, func() (time.Time, error) { return e.Route(2) },
		func() (time.Time, error) { return e.AddRoute(3) }, func() (time.Time, error) { return e.RemoveRoute(4) },
		func() (time.Time, error) { return e.Scale(1, 5, 5) }, func() (time.Time, error) { return e.Replace(42, 6) },
	} {
		if at, err := edit(); err != nil || at.Unix() != int64(n+1) {
			t.Error(n, at, err)
		}
	}
	last := r.changes[5]
	pod, err := json.Marshal(last.Writes[0].Object)
	must(t, err)
	node := e.Successor(42, 6).Metadata.Fields
	for _, fact := range []string{node["NAME"].GetStringValue(),
		node["LABELS"].GetStructValue().Fields["pod-template-hash"].GetStringValue(), Address(6)} {
		if fact == "" || !strings.Contains(string(pod), fact) {
			t.Errorf("the pod does not say %q: %s", fact, pod)
		}
	}
	if gone := last.Writes[2]; !gone.Delete ||
		gone.Object.GetName() != m.Node(42).Metadata.Fields["NAME"].GetStringValue() {
		t.Errorf("%+v is not the pod that was", gone)
	}
	if _, err := e.Replace(m.Workloads(), 7); err == nil {
		t.Error("a workload that is not there is replaced")
	}
	if e.Reset().Replicas(1) != 2 {
		t.Error("edits are not forgotten")
	}
}

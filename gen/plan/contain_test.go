package plan

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// faultMesh is a planner of two services in a namespace, a proxy in each of two namespaces, and what is told to be left
// out.
type faultMesh struct {
	t       *testing.T
	planner *Planner
	builder *snapshot.Builder
	sink    *recorder
	log     *strings.Builder

	mu sync.Mutex
	// Guarded by mu.
	told map[value.ObjectKey][]checked.Fault
}

func newFaultMesh(t *testing.T, hook func(any)) *faultMesh {
	w := &faultMesh{t: t, sink: newRecorder(), told: map[value.ObjectKey][]checked.Fault{}, log: &strings.Builder{}}
	tables := NewTables()
	tables.faults.Hook(hook)
	w.planner = NewPlanner(tables, w.sink, Options{Now: time.Now, After: time.After,
		Log: slog.New(slog.NewTextHandler(w.log, nil)),
		Faults: func(o value.ObjectKey, list []checked.Fault) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.told[o] = list; len(list) == 0 {
				delete(w.told, o)
			}
		}})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { w.planner.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	w.builder = snapshot.NewBuilder(w.planner)
	b := &snapshottest.Batch{Mesh: testMesh(0), Services: map[value.ServiceKey]*value.Service{}}
	for _, name := range []string{"one", "two"} {
		k := value.ServiceKey{Host: name + ".a.svc.cluster.local", Namespace: "a"}
		b.Services[k] = &value.Service{ServiceKey: k, Name: name, Export: value.Visibility{Public: true},
			Addresses: []string{"10.96.0." + fmt.Sprint(len(name)+int(name[0]))},
			Object:    value.ObjectKey{Kind: value.KindService, Namespace: "a", Name: name},
			Ports:     []*value.Port{{Name: "http", Number: 80, Protocol: value.HTTP}}}
	}
	snapshottest.Apply(w.builder, b)
	w.attach(1, "a")
	w.attach(2, "b")
	return w
}

func (w *faultMesh) attach(id uint64, namespace string) {
	p := &proxy.Proxy{ID: fmt.Sprint("p", id), Namespace: namespace, Addresses: []string{fmt.Sprint("10.0.0.", id)},
		ClusterID: "Kubernetes", Labels: proxy.PackLabels(nil)}
	p.Traits.IPv4, p.Traits.Filters = true, value.AllFilters
	w.planner.Attach(id, p)
	w.settle()
}

func (w *faultMesh) settle() {
	if err := w.planner.Barrier(context.Background()); err != nil {
		w.t.Fatal(err)
	}
}

// route makes a VirtualService of that name for a host, with one route, or removes it (no route).
func (w *faultMesh) route(name, host string, route *networking.HTTPRoute) value.ObjectKey {
	key := value.ObjectKey{Kind: value.KindVirtualService, Namespace: "a", Name: name}
	var vs *value.VirtualService
	if route != nil {
		vs = &value.VirtualService{Meta: value.Meta{Namespace: "a", Name: name}, Export: value.Visibility{Public: true},
			Routing: istio.Routing(&networking.VirtualService{Hosts: []string{host}, Gateways: []string{"mesh"},
				Http: []*networking.HTTPRoute{route}})}
	}
	snapshottest.Apply(
		w.builder,
		&snapshottest.Batch{VirtualServices: map[value.ObjectKey]*value.VirtualService{key: vs}},
	)
	w.settle()
	return key
}

// hosts returns the virtual hosts of port 80 that a proxy has, in order.
func (w *faultMesh) hosts(id uint64) (out []string) {
	set := w.sink.sets[w.sink.classes[id]]
	if set == nil {
		return nil
	}
	e, ok := set.Sections.Of(xdstype.Route).Get("80")
	if !ok {
		return nil
	}
	for f := range e.Parts() {
		if p := checked.PartOf(f); len(f.Bytes()) > 0 && p != "header" && p != "*" {
			out = append(out, p)
		}
	}
	return out
}

func (w *faultMesh) faults(k value.ObjectKey) []checked.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.told[k])
}

// to returns a route to a host.
func to(host string) *networking.HTTPRoute {
	return &networking.HTTPRoute{
		Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: host}}},
	}
}

// badRoute returns one that Envoy refuses: it matches an empty regex.
func badRoute(host string) *networking.HTTPRoute {
	r := to(host)
	r.Match = []*networking.HTTPMatchRequest{{Uri: &networking.StringMatch{MatchType: &networking.StringMatch_Regex{}}}}
	return r
}

const hostOne, hostTwo = "one.a.svc.cluster.local:80", "two.a.svc.cluster.local:80"

// TestBadVirtualHostIsLeftOutAlone: what Envoy would refuse of one VirtualService takes nothing from the other virtual
// hosts of the route configuration, is told about its object, and comes back when it is mended.
func TestBadVirtualHostIsLeftOutAlone(t *testing.T) {
	w := newFaultMesh(t, nil)
	both := []string{hostOne, hostTwo}
	if got := w.hosts(1); !slices.Equal(got, both) {
		t.Fatalf("virtual hosts %v", got)
	}
	key := w.route("bad", "one.a.svc.cluster.local", badRoute("two.a.svc.cluster.local"))
	for id := uint64(1); id <= 2; id++ {
		if got := w.hosts(id); !slices.Equal(got, []string{hostTwo}) {
			t.Errorf("proxy %d has virtual hosts %v", id, got)
		}
	}
	got := w.faults(key)
	if len(got) != 1 || got[0].Resource != "virtual host "+hostOne ||
		!strings.Contains(got[0].Field, "routes[0].match") || got[0].Panicked {
		t.Errorf("told %v", got)
	}
	w.attach(3, "c") // it starts in the middle of it
	if got := w.hosts(3); !slices.Equal(got, []string{hostTwo}) {
		t.Errorf("a new proxy has virtual hosts %v", got)
	}
	other := w.route("other", "two.a.svc.cluster.local", to("one.a.svc.cluster.local"))
	if len(w.faults(key)) != 1 || len(w.faults(other)) != 0 {
		t.Error("another object's change takes the fault away, or gets it")
	}
	w.route("bad", "one.a.svc.cluster.local", to("two.a.svc.cluster.local"))
	if got := w.hosts(1); !slices.Equal(got, both) || len(w.faults(key)) != 0 {
		t.Errorf("mended: virtual hosts %v, faults %v", got, w.faults(key))
	}
	w.route("bad", "one.a.svc.cluster.local", badRoute("two.a.svc.cluster.local"))
	w.route("bad", "", nil)
	if got := w.hosts(1); !slices.Equal(got, both) || len(w.faults(key)) != 0 {
		t.Errorf("deleted: virtual hosts %v, faults %v", got, w.faults(key))
	}
}

// TestPanicInAFill: making one virtual host panics. It is left out alone; its object is told, once logged with a stack.
func TestPanicInAFill(t *testing.T) {
	w := newFaultMesh(t, func(k any) {
		if vh, ok := k.(gen.VirtualHostKey); ok && vh.Routes.Service != nil && vh.Routes.Service.Name == "bad" {
			panic("injected")
		}
	})
	key := w.route("bad", "one.a.svc.cluster.local", to("two.a.svc.cluster.local"))
	if got := w.hosts(1); !slices.Equal(got, []string{hostTwo}) {
		t.Errorf("virtual hosts %v", got)
	}
	if got := w.faults(key); len(got) != 1 || !got[0].Panicked || !strings.Contains(got[0].Reason, "injected") {
		t.Errorf("told %v", got)
	}
	if log := w.log.String(); strings.Count(log, "stack=") != 1 || !strings.Contains(log, "TestPanicInAFill") {
		t.Errorf("logged %s", log)
	}
	w.route("bad", "", nil)
	if got := w.hosts(1); len(got) != 2 || len(w.faults(key)) != 0 {
		t.Errorf("deleted: virtual hosts %v, faults %v", got, w.faults(key))
	}
}

// TestPanicInABase: bringing the base of one namespace to a change panics. It keeps what it had; the others go on, and
// so does it with the next change that concerns it, to what a planner that starts now would give it.
func TestPanicInABase(t *testing.T) {
	bad := true
	w := newFaultMesh(t, func(k any) {
		if bs, ok := k.(*baseState); ok && bs.facts.Namespace == "b" && bad {
			panic("injected")
		}
	})
	key := w.route("x", "three.example.com", to("two.a.svc.cluster.local"))
	if got := w.hosts(1); len(got) != 3 {
		t.Errorf("its neighbour has %v", got)
	}
	if got := w.hosts(2); len(got) != 2 {
		t.Errorf("the base has %v, want what it had", got)
	}
	if got := w.faults(key); len(got) != 1 || !got[0].Panicked {
		t.Errorf("told %v", got)
	}
	bad = false
	w.route("y", "four.example.com", to("two.a.svc.cluster.local"))
	if got := w.hosts(2); len(got) != 4 || w.planner.tables.Faults().Keys != 0 {
		t.Errorf("after the next change it has %v, faults %v", got, w.planner.tables.Faults())
	}
}

// TestPanicInAClass: computing what one class has of its own panics: it keeps its ResourceSet, others go on.
func TestPanicInAClass(t *testing.T) {
	bad := true
	w := newFaultMesh(t, func(k any) {
		if cs, ok := k.(*classState); ok && cs.base.facts.Namespace == "b" && bad {
			panic("injected")
		}
	})
	w.route("x", "three.example.com", to("two.a.svc.cluster.local"))
	if a, b := w.hosts(1), w.hosts(2); len(a) != 3 || len(b) != 2 {
		t.Errorf("neighbour %v, class %v", a, b)
	}
	bad = false
	w.route("y", "four.example.com", to("two.a.svc.cluster.local"))
	if got := w.hosts(2); len(got) != 4 {
		t.Errorf("after the next change it has %v", got)
	}
}

// TestPanicInAClient: working out the class of one client panics. It gets no answer, rather than an empty one, until a
// change; others do.
func TestPanicInAClient(t *testing.T) {
	bad := true
	w := newFaultMesh(t, func(k any) {
		if c, ok := k.(*client); ok && c.id == 3 && bad {
			panic("injected")
		}
	})
	w.attach(3, "c")
	w.attach(4, "c")
	if w.sink.classes[3] != nil || len(w.hosts(4)) != 2 {
		t.Errorf("client 3 is answered, or 4 has %v", w.hosts(4))
	}
	bad = false
	w.route("x", "three.example.com", to("two.a.svc.cluster.local"))
	if got := w.hosts(3); len(got) != 3 {
		t.Errorf("after a change it has %v", got)
	}
	w.planner.Detach(3)
	w.settle()
	if got := w.planner.tables.Faults(); got.Keys != 0 || got.Panics == 0 {
		t.Errorf("faults %v", got)
	}
}

// TestPanicInSearches: finding out whom a change concerns panics. All are looked at.
func TestPanicInSearches(t *testing.T) {
	w := newFaultMesh(t, func(k any) {
		if _, ok := k.(finding); ok {
			panic("injected")
		}
	})
	w.route("x", "three.example.com", to("two.a.svc.cluster.local"))
	if a, b := w.hosts(1), w.hosts(2); len(a) != 3 || len(b) != 3 {
		t.Errorf("after a change they have %v and %v", a, b)
	}
}

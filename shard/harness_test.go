package shard

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fleet is Shards with a planner and streams of the test's own. Every method returns when the workers are at rest.
type fleet struct {
	t       *testing.T
	shards  *Shards
	planner *planner
	lastID  uint64
	entries map[string]*encodecache.Entry
	rev     uint64
	assign  map[string]*classes.Assignment

	mu sync.Mutex
	// Guarded by mu: the endpoints of each service, as text.
	endpoints map[value.ServiceKey]string
	refusals  []Refusal
	faults    []Fault
	breaks    func(doing string, id uint64) bool
}

// planner notes who is attached.
type planner struct {
	mu       sync.Mutex
	attached map[uint64]*proxy.Proxy // guarded by mu
}

func (p *planner) Attach(id uint64, client *proxy.Proxy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.attached[id] = client
}

func (p *planner) Detach(id uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.attached, id)
}

// withFleet runs f in a bubble of fake time with running workers, and sees to it that nothing is left of them.
func withFleet(t *testing.T, workers int, f func(*fleet)) {
	synctest.Test(t, func(t *testing.T) {
		fl := &fleet{
			t: t, planner: &planner{attached: map[uint64]*proxy.Proxy{}}, entries: map[string]*encodecache.Entry{},
			assign: map[string]*classes.Assignment{}, endpoints: map[value.ServiceKey]string{},
		}
		fl.shards = New(Options{
			Workers: workers, Planner: fl.planner, Now: time.Now, After: time.After,
			Metrics: Metrics{Refused: func(r Refusal) {
				fl.mu.Lock()
				defer fl.mu.Unlock()
				fl.refusals = append(fl.refusals, r)
			}, Panicked: func(x Fault) {
				fl.mu.Lock()
				defer fl.mu.Unlock()
				fl.faults = append(fl.faults, x)
			}},
			sabotage: fl.sabotage,
			join:     join{fl.assignmentsOf, fl.join},
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			fl.shards.Run(ctx)
			close(done)
		}()
		f(fl)
		cancel()
		<-done
	})
}

func (f *fleet) assignmentsOf(w *classes.ResourceSet, s value.ServiceKey) []*classes.Assignment {
	if a, ok := w.Assignments.Get(s.Host); ok {
		return []*classes.Assignment{a}
	}
	return nil
}

func (f *fleet) join(a *classes.Assignment, _ *snapshot.EndpointTable) *encodecache.Entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.entry(xdstype.EndpointURL, a.Name, f.endpoints[a.Service])
}

// entry returns a resource with that text; equal ones are one pointer. The caller holds mu, or is alone.
func (f *fleet) entry(url, name, text string) *encodecache.Entry {
	key := url + " " + name + "=" + text
	if f.entries[key] == nil {
		f.entries[key] = encodecache.NewLeaf(url, name, encodecache.NewFragment([]byte(name+"="+text)))
	}
	return f.entries[key]
}

// set makes a ResourceSet of those clusters, "name=text …", each with endpoints, and those routes.
func (f *fleet) set(clusters, routes string) *classes.ResourceSet {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rev++
	w := &classes.ResourceSet{Revision: f.rev, Sections: make(classes.Sections, 4)}
	for _, c := range strings.Fields(clusters) {
		name, text, _ := strings.Cut(c, "=")
		w.Sections[xdstype.Cluster] = w.Sections.Of(xdstype.Cluster).Set(name, f.entry(xdstype.ClusterURL, name, text))
		if f.assign[name] == nil {
			f.assign[name] = &classes.Assignment{Name: name, Service: serviceOf(name)}
		}
		w.Assignments = w.Assignments.Set(name, f.assign[name])
	}
	for _, r := range strings.Fields(routes) {
		name, text, _ := strings.Cut(r, "=")
		w.Sections[xdstype.Route] = w.Sections.Of(xdstype.Route).Set(name, f.entry(xdstype.RouteURL, name, text))
	}
	return w
}

func serviceOf(name string) value.ServiceKey { return value.ServiceKey{Host: name, Namespace: "n"} }

// table sets endpoints, "name=text …", and publishes the table.
func (f *fleet) table(endpoints string) {
	f.postTable(endpoints)
	synctest.Wait()
}

func (f *fleet) postTable(endpoints string) {
	e := f.endpointsOf(endpoints)
	f.shards.EndpointsChanged(e.Table, e.Services)
}

// endpointsOf sets endpoints and publishes nothing.
func (f *fleet) endpointsOf(endpoints string) classes.Endpoints {
	f.mu.Lock()
	defer f.mu.Unlock()
	var services []value.ServiceKey
	for _, e := range strings.Fields(endpoints) {
		name, text, _ := strings.Cut(e, "=")
		f.endpoints[serviceOf(name)] = text
		services = append(services, serviceOf(name))
	}
	f.rev++
	return classes.Endpoints{Table: &snapshot.EndpointTable{Revision: f.rev}, Services: services}
}

// advance gives a class a new ResourceSet.
func (f *fleet) advance(c *classes.Class, w *classes.ResourceSet) {
	f.shards.Advanced(map[*classes.Class]*classes.ResourceSet{c: w}, classes.Endpoints{})
	synctest.Wait()
}

// fakeStream keeps what it is sent. It answers nothing by itself.
type fakeStream struct {
	fleet *fleet
	id    uint64

	mu sync.Mutex
	// Guarded by mu.
	got       []*encodecache.Response
	urls      []string
	closed    error
	backlog   bool
	onReceive func()
}

// ID implements Stream.
func (s *fakeStream) ID() uint64 { return s.id }

// Send implements Stream.
func (s *fakeStream) Send(url string, r *encodecache.Response) {
	s.mu.Lock()
	s.got, s.urls = append(s.got, r), append(s.urls, url)
	f := s.onReceive
	s.mu.Unlock()
	if f != nil {
		f()
	}
}

// Close implements Stream.
func (s *fakeStream) Close(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = err
}

// Backlogged implements Backlogged.
func (s *fakeStream) Backlogged() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.backlog
}

func (s *fakeStream) setBacklog(b bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backlog = b
}

// holds returns how many responses it has that were not taken.
func (s *fakeStream) holds() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.got)
}

// connect attaches a Delta stream of a proxy, with a wildcard CDS request.
func (f *fleet) connect(node string) *fakeStream {
	f.lastID++
	s := &fakeStream{fleet: f, id: f.lastID}
	p := &proxy.Proxy{ID: node, Name: node, Namespace: "n"}
	if err := f.shards.Attach(s, p, ads.Request{Delta: true, TypeURL: xdstype.ClusterURL}); err != nil {
		f.t.Fatal(err)
	}
	synctest.Wait()
	return s
}

// place assigns a stream to a class.
func (s *fakeStream) place(c *classes.Class, w *classes.ResourceSet) *fakeStream {
	s.fleet.shards.Assigned(s.id, c, w)
	synctest.Wait()
	return s
}

// ask sends a Delta request.
func (s *fakeStream) ask(r ads.Request) *fakeStream {
	r.Delta = true
	s.fleet.shards.Receive(s.id, r)
	synctest.Wait()
	return s
}

// endpoints subscribes to endpoints.
func (s *fakeStream) endpoints(names ...string) *fakeStream {
	return s.ask(ads.Request{TypeURL: xdstype.EndpointURL, Subscribe: s.fleet.shards.opts.Names.Of(names)})
}

// take returns what has come since the last call, each response as "CDS a=1 b=1 -gone", and ACKs it.
func (s *fakeStream) take() string { return s.read(true) }

// read works like take; ack tells whether to ACK.
func (s *fakeStream) read(ack bool) string {
	s.mu.Lock()
	got, urls := s.got, s.urls
	s.got, s.urls = nil, nil
	s.mu.Unlock()
	var out []string
	for i, r := range got {
		out = append(out, show(s.fleet.t, urls[i], r))
		if ack {
			s.ask(ads.Request{TypeURL: urls[i], Nonce: r.Nonce()})
		}
	}
	return strings.Join(out, "; ")
}

// show returns a Delta response as text.
func show(t *testing.T, url string, r *encodecache.Response) string {
	var m discoveryv3.DeltaDiscoveryResponse
	if err := proto.Unmarshal(r.Buffers().Materialize(), &m); err != nil {
		t.Fatal(err)
	}
	typ, _ := xdstype.Of(url)
	out := []string{typ.String()}
	for _, res := range m.GetResources() {
		out = append(out, string(res.GetResource().GetValue()))
	}
	for _, name := range m.GetRemovedResources() {
		out = append(out, "-"+name)
	}
	sort.Strings(out[1:])
	return strings.Join(out, " ")
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func class(name string) *classes.Class { return &classes.Class{Name: name, Type: value.Router} }

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

var _ classes.Sink = (*Shards)(nil)

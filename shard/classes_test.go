package shard

import (
	"fmt"
	"maps"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// Classes with equal assignments share their endpoints, also when their ResourceSets came to be in other ways, and
// nothing is left of classes that nobody is of any more.
func TestClassesShareTheirEndpoints(t *testing.T) {
	withFleet(t, 1, func(f *fleet) {
		f.table("a=1 b=1")
		one, other, third := f.set("a=1 b=1", ""), f.set("b=1", ""), f.set("a=1 b=1", "")
		other.Assignments = one.Assignments.Set("b", f.assign["b"])
		third.Assignments = one.Assignments.Delete("a")
		w := f.shards.workers[0]
		var streams []*fakeStream
		for i, set := range []*classes.ResourceSet{one, other, third} {

			streams = append(streams, f.connect(nodeName(i)).place(class(fmt.Sprint(i)), set).endpoints("a", "b"))
		}
		joined := map[*joined]int{}
		for c := range w.roster.groups {
			joined[c.desired.endpoints]++
		}
		if len(joined) != 2 || len(w.roster.subscribers.bySub) != 1 {
			t.Errorf("%d sets of endpoints and %d subscriptions, want 2 and 1", len(joined), len(w.roster.subscribers.bySub))
		}
		for _, s := range streams {
			s.take()
		}
		f.table("a=2")
		expect(t, "the first", streams[0].take(), "EDS a=2")
		expect(t, "the second", streams[1].take(), "EDS a=2")
		expect(t, "the third, whose ResourceSet has it not", streams[2].take(), "")
		for _, s := range streams {
			f.shards.Detach(s.id)
		}
		synctest.Wait()
		if len(w.endpoints.joins.by)+len(w.roster.subscribers.bySub)+len(w.roster.groups) != 0 {
			t.Errorf("%d sets of endpoints, %d subscriptions and %d groups are left", len(w.endpoints.joins.by),
				len(w.roster.subscribers.bySub), len(w.roster.groups))
		}
	})
}

// classes is a worker with one member in each of n classes, each of which has a cluster of its own and 100 that all
// have.
type manyClasses struct {
	worker  *worker
	classes []*classes.Class
	sets    map[*classes.Class]*classes.ResourceSet
	rev     uint64
}

// sink is a Stream that takes everything.
type sink uint64

func (s sink) ID() uint64                         { return uint64(s) }
func (s sink) Send(string, *encodecache.Response) {}
func (s sink) Close(error)                        {}

func newClasses(n int) *manyClasses {
	c := &manyClasses{sets: map[*classes.Class]*classes.ResourceSet{}, rev: 1}
	now := time.Unix(1000, 0)
	shards := New(Options{Workers: 1, Planner: &planner{attached: map[uint64]*proxy.Proxy{}},
		Now: func() time.Time { return now }, join: join{
			func(w *classes.ResourceSet, s value.ServiceKey) []*classes.Assignment {
				if a, ok := w.Assignments.Get(s.Host); ok {
					return []*classes.Assignment{a}
				}
				return nil
			},
			func(a *classes.Assignment, t *snapshot.EndpointTable) *encodecache.Entry {
				return encodecache.NewLeaf(xdstype.EndpointURL, a.Name,
					encodecache.NewFragment(fmt.Append(nil, t.Revision)))
			},
		}})
	c.worker = shards.workers[0]
	c.worker.endpoints.table = &snapshot.EndpointTable{Revision: 1}
	base := &classes.ResourceSet{Revision: 1}
	var names []string
	for i := range 100 {
		name := fmt.Sprint("host-", i)
		names = append(names, name)
		base.Assignments = base.Assignments.Set(name, &classes.Assignment{Name: name, Service: serviceOf(name)})
	}
	for i := range n {
		class := &classes.Class{Name: fmt.Sprint(i), Type: value.Router}
		own := fmt.Sprint("own-", i)
		w := &classes.ResourceSet{Revision: 1,
			Assignments: base.Assignments.Set(own, &classes.Assignment{Name: own, Service: serviceOf(own)})}
		c.classes, c.sets[class] = append(c.classes, class), w
		first := ads.Request{
			Delta:     true,
			TypeURL:   xdstype.EndpointURL,
			Subscribe: shards.opts.Names.Of(append(names, own)),
		}
		m := newClient(sink(i+1), &proxy.Proxy{ID: own}, first, now)
		shards.clients.Store(m.id, m)
		c.worker.handleMail(m, mail{request: &first, assigned: &assignment{class: class, set: w}})
		c.worker.entrance.welcome()
	}
	c.worker.round()
	return c
}

// change gives every class a ResourceSet with another cluster.
func (c *manyClasses) change(name string) {
	c.rev++
	added := &classes.Assignment{Name: name, Service: serviceOf(name)}
	for class, w := range c.sets {
		next := *w
		next.Revision, next.Assignments = c.rev, w.Assignments.Set(name, added)
		c.sets[class] = &next
	}
	c.worker.slots.postResourceSets(maps.Clone(c.sets), classes.Endpoints{}, c.worker.now())
	c.worker.round()
}

// endpoints changes the endpoints of a service.
func (c *manyClasses) endpoints(name string) {
	c.rev++
	c.worker.slots.postEndpoints(&snapshot.EndpointTable{Revision: c.rev}, []value.ServiceKey{serviceOf(name)},
		c.worker.now())
	c.worker.round()
}

// BenchmarkClasses is what a change of configuration that all see, and one of endpoints that one sees, cost a worker,
// by the number of classes. For each class it should be the same however many there are.
func BenchmarkClasses(b *testing.B) {
	for _, n := range []int{1, 100, 4000} {
		c := newClasses(n)
		perClass := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/class")
		}
		b.Run(fmt.Sprintf("config/%d", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				c.change(fmt.Sprint("added-", i%2))
			}
			perClass(b)
		})
		b.Run(fmt.Sprintf("endpoints/%d", n), func(b *testing.B) {
			for b.Loop() {
				c.endpoints("own-0")
			}
			perClass(b)
		})
	}
}

// A change costs a class the same beside many others as beside few. What is measured is the time of processors, which
// does not depend on what else the machine does.
func TestCostOfAChangeIsLinearInClasses(t *testing.T) {
	perClass := func(n int) float64 {
		c := newClasses(n)
		best := time.Hour
		for i := range 5 {
			begin := processorTime(t)
			for j := range 4000 / n {
				c.change(fmt.Sprint("added-", i, j))
			}
			best = min(best, processorTime(t)-begin)
		}
		return float64(best) / 4000
	}
	few, many := perClass(250), perClass(4000)
	if many > 8*few {
		t.Errorf("a class costs %.0f ns beside 250 and %.0f ns beside 4000", few, many)
	}
}

func processorTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

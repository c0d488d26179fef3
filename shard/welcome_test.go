package shard

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/xdstype"
)

// door is a fleet on one shard whose budget admits one client at a time: the first holds it until it is let go of.
type door struct {
	*fleet
	class   *classes.Class
	set     *classes.ResourceSet
	blocker *fakeStream
	order   []string // who has been answered; guarded by the fleet's mu
}

// answered returns the order until now.
func (d *door) answered() []string {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.order)
}

func withDoor(t *testing.T, f func(*door)) {
	withFleet(t, 1, func(fl *fleet) {
		fl.shards.budget.SetLimit(1)
		fl.table("x=1 y=1")
		d := &door{fleet: fl, class: class("c"), set: fl.set("x=1 y=1", "")}
		d.blocker = d.comes("blocker", nil)
		f(d)
	})
}

// has returns the versions of a client that has those clusters, "name=text …".
func (f *fleet) has(clusters string) *ads.Versions {
	out := map[string]string{}
	for _, c := range strings.Fields(clusters) {
		name, text, _ := strings.Cut(c, "=")
		out[name] = f.entry(xdstype.ClusterURL, name, text).Version()
	}
	return f.shards.opts.Names.VersionsOf(out)
}

// attach attaches a stream of a client that has something, and waits for nothing.
func (f *fleet) attach(node string, initial *ads.Versions) *fakeStream {
	f.lastID++
	s := &fakeStream{fleet: f, id: f.lastID}
	r := ads.Request{Delta: true, TypeURL: xdstype.ClusterURL, Initial: initial}
	if err := f.shards.Attach(s, &proxy.Proxy{ID: node, Name: node, Namespace: "n"}, r); err != nil {
		f.t.Fatal(err)
	}
	return s
}

// comes returns a client that reads nothing and is planned for.
func (d *door) comes(node string, initial *ads.Versions) *fakeStream {
	s := d.attach(node, initial)
	s.backlog = true
	s.onReceive = func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.order = append(d.order, node)
	}
	d.shards.Assigned(s.id, d.class, d.set)
	return s
}

// reads has a client read all that it was sent, and say so.
func (s *fakeStream) reads() {
	s.setBacklog(false)
	s.mu.Lock()
	n := len(s.got)
	var ack ads.Request
	if n > 0 {
		ack = ads.Request{Delta: true, TypeURL: s.urls[n-1], Nonce: s.got[n-1].Nonce()}
	}
	s.mu.Unlock()
	if n > 0 {
		s.fleet.shards.Receive(s.id, ack)
	}
	synctest.Wait()
}

// Those that need most are answered first, whenever they came, and one after the other.
func TestOrderOfNeed(t *testing.T) {
	withDoor(t, func(d *door) {
		var all []*fakeStream
		for i := range 3 {
			all = append(all,
				d.comes(fmt.Sprint("current", i), d.has("x=1 y=1")),
				d.comes(fmt.Sprint("stale", i), d.has("x=0 y=1")),
				d.comes(fmt.Sprint("older", i), d.has("x=1 y=1 gone=1")),
				d.comes(fmt.Sprint("new", i), nil))
		}
		expect(t, "before anybody reads", strings.Join(d.answered(), " "), "blocker")
		expect(t, "who waits", fmt.Sprint(d.shards.Stats()[0].Connecting, len(d.shards.Waiting())), "12 12")
		d.blocker.reads()
		for i := range all {
			order := d.answered()
			name := order[len(order)-1]
			if len(order) != i+2 {
				t.Fatalf("%d were answered when %d had read: %q", len(order), i+1, order)
			}
			at := slices.IndexFunc(all, func(s *fakeStream) bool { return d.nodeOf(s) == name })
			all[at].reads()
		}
		want := "blocker new0 new1 new2 stale0 older0 stale1 older1 stale2 older2 current0 current1 current2"
		expect(t, "order", strings.Join(d.answered(), " "), want)
		if n, _ := d.shards.Underway(); n != 0 {
			t.Errorf("%d bytes are under way when all is read", n)
		}
	})
}

func (d *door) nodeOf(s *fakeStream) string {
	m, ok := d.shards.clients.Load(s.id)
	if !ok {
		return ""
	}
	return m.proxy.ID
}

// A client that has what it should waits for those that need more, but not for those that come later and later.
func TestNobodyStarves(t *testing.T) {
	withDoor(t, func(d *door) {
		begin := time.Now()
		patient := d.comes("patient", d.has("x=1 y=1"))
		newest := d.comes("new", nil)
		last := d.blocker
		for time.Since(begin) < 20*time.Second && !slices.Contains(d.answered(), "patient") {
			next := d.comes(fmt.Sprint("new at ", time.Since(begin)), nil)
			last.reads()
			last, newest = newest, next
			time.Sleep(100 * time.Millisecond)
		}
		if waited := time.Since(begin); waited < 4*time.Second || waited > 6*time.Second {
			t.Errorf("it waited %v", waited)
		}
		patient.reads()
	})
}

// Clients that read nothing hold the others up for their grace, not for ever, and each of them once.
func TestClientsThatReadNothing(t *testing.T) {
	withDoor(t, func(d *door) {
		for i := range 9 {
			d.comes(fmt.Sprint("mute", i), nil)
		}
		begin := time.Now()
		d.comes("last", nil)
		for !slices.Contains(d.answered(), "last") && time.Since(begin) < time.Minute {
			time.Sleep(100 * time.Millisecond)
		}
		if waited := time.Since(begin); waited > 10*grace || waited < 9*grace {
			t.Errorf("it waited %v behind ten that read nothing", waited)
		}
		for id := range d.lastID {
			d.shards.Detach(id + 1)
		}
		synctest.Wait()
		if n, _ := d.shards.Underway(); n != 0 {
			t.Errorf("%d bytes are under way when all have left", n)
		}
	})
}

// What is under way stays within the budget, but for one answer of each shard, and the first answers to all types
// count.
func TestBytesUnderWay(t *testing.T) {
	const workers, clients = 2, 60
	withFleet(t, workers, func(f *fleet) {
		f.shards.budget.SetLimit(500)
		f.table("x=1 y=1")
		var all []*fakeStream
		largest := 0
		for i := range clients {
			s := f.attach(nodeName(i), nil)
			s.backlog = true
			f.shards.Assigned(s.id, class(nodeName(i%8)), f.set("x="+strings.Repeat("1", 100+i)+" y=1", ""))
			all = append(all, s)
		}
		served, peak := 0, 0
		for rounds := 0; served < 2*clients; rounds++ {
			synctest.Wait()
			underway, _ := f.shards.Underway()
			peak = max(peak, underway)
			progress := false
			for _, s := range all {
				if s.holds() == 0 {
					continue
				}
				progress = true
				first := s.urls[0] == xdstype.ClusterURL
				for _, r := range s.got {
					largest = max(largest, r.Len())
				}
				served += len(s.got)
				if !first {
					s.reads()
				}
				s.got, s.urls = nil, nil
				s.setBacklog(true)
				if first {
					f.shards.Receive(s.id, ads.Request{Delta: true, TypeURL: xdstype.EndpointURL,
						Subscribe: f.shards.opts.Names.Of([]string{"x"})})
				}
			}
			if !progress {
				t.Fatalf("nobody is served; %d answers so far, %d bytes under way", served, underwayOf(f))
			}
		}
		if peak > 500+workers*largest || peak < 500 {
			t.Errorf("%d bytes were under way, where one answer has up to %d", peak, largest)
		}
	})
}

// Changes of endpoints and of configuration do not wait for those that connect.
func TestChangesOvertakeThoseThatConnect(t *testing.T) {
	withFleet(t, 1, func(f *fleet) {
		f.table("x=1 y=1")
		c, w, next := class("old"), f.set("x=1 y=1", ""), f.set("x=2 y=1", "")
		old := f.connect("old").place(c, w)
		old.take()
		old.endpoints("y").take()
		var order []string
		old.onReceive = func() { order = append(order, old.urls[len(old.urls)-1]) }
		crowd, other := class("crowd"), f.set("x=1 y=1", "")
		answered := 0
		hold := f.attach("hold", nil) // so that the worker is busy until all have come
		hold.onReceive = func() {
			for i := range 100 {
				s := f.attach(nodeName(i), nil)
				s.onReceive = func() {
					if answered++; answered == 10 {
						f.postTable("y=2")
						f.shards.Advanced(map[*classes.Class]*classes.ResourceSet{c: next}, classes.Endpoints{})
					}
					if answered <= 11 {
						order = append(order, "new")
					}
				}
				f.shards.Assigned(s.id, crowd, other)
			}
		}
		f.shards.Assigned(hold.id, crowd, other)
		synctest.Wait()
		want := slices.Concat(
			slices.Repeat([]string{"new"}, 10),
			[]string{xdstype.EndpointURL, xdstype.ClusterURL, "new"},
		)
		if answered != 100 || !slices.Equal(order, want) {
			t.Errorf("%d were answered, in the order %q", answered, order)
		}
	})
}

// The planner is asked for a few at a time, in the order of need, and not for those that have left.
func TestFewAreInPlanning(t *testing.T) {
	withFleet(t, 1, func(f *fleet) {
		f.shards.gate.SetLimit(2)
		f.table("x=1")
		c, w := class("c"), f.set("x=1", "")
		var all []*fakeStream
		for i := range 4 {
			all = append(all, f.attach(fmt.Sprint("returning", i), f.has("x=0")))
		}
		for i := range 4 {
			all = append(all, f.attach(fmt.Sprint("new", i), nil))
		}
		f.shards.Detach(all[2].id) // while it waits
		f.shards.Detach(all[5].id)
		f.shards.Detach(all[0].id) // while it is planned for
		var asked []string
		for len(f.planner.attached) > 0 {
			if len(f.planner.attached) > 2 {
				t.Fatalf("the planner has %d", len(f.planner.attached))
			}
			id := slices.Max(slices.Collect(maps.Keys(f.planner.attached)))
			asked = append(asked, f.planner.attached[id].ID)
			delete(f.planner.attached, id)
			f.shards.Assigned(id, c, w)
			f.shards.Assigned(id, c, w) // again counts for nothing
			synctest.Wait()
		}
		expect(t, "asked for", strings.Join(asked, " "),
			"new0 new2 new3 returning3 returning1") // that one was asked for first of all
	})
}

// What was encoded for those that connect is kept for the next one, and for nobody when none has come for a while, when
// one leaves or when it is out of date.
func TestEncodedRunsAreLetGo(t *testing.T) {
	const many = "xa=1 xb=1 xc=1 xd=1 xe=1 xf=1 xg=1 xh=1 xi=1 xj=1 xk=1 xl=1 xm=1 xn=1 xo=1 xp=1 xq=1 xr=1 xs=1 xt=1"
	for name, end := range map[string]func(*fleet, *fakeStream, *classes.Class){
		"time":  func(*fleet, *fakeStream, *classes.Class) { time.Sleep(grace + time.Millisecond) },
		"leave": func(f *fleet, s *fakeStream, _ *classes.Class) { f.shards.Detach(s.id) },
		"change": func(f *fleet, _ *fakeStream, c *classes.Class) {
			f.shards.Advanced(map[*classes.Class]*classes.ResourceSet{c: f.set(strings.Replace(many, "xa=1", "xa=2", 1), "")},
				classes.Endpoints{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			withFleet(t, 1, func(f *fleet) {
				f.table(many)
				c := class("c")
				f.attach("first", nil)
				s := f.attach("second", nil)
				w := f.set(many, "")
				f.shards.Assigned(s.id-1, c, w)
				f.shards.Assigned(s.id, c, w)
				keeps := func() int {
					synctest.Wait()
					f.shards.kept.mu.Lock()
					defer f.shards.kept.mu.Unlock()
					return len(f.shards.kept.runs)
				}
				kept := keeps()
				end(f, s, c)
				if left := keeps(); kept == 0 || left != 0 {
					t.Errorf("%d runs were kept, %d are left", kept, left)
				}
			})
		})
	}
}

// underwayOf returns how many bytes are under way.
func underwayOf(f *fleet) int {
	bytes, _ := f.shards.Underway()
	return bytes
}

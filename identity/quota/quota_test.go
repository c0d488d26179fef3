package quota

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/pilotd/pilotd/identity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// named returns the caller with that service account.
func named(name string) Caller {
	return Of(identity.Identity{TrustDomain: "td", Namespace: "ns", ServiceAccount: name}, nil)
}

func at(addr string) Caller {
	return Of(identity.Identity{}, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr)))
}

// An identity counts wherever it comes from; without one the address counts, of IPv6 the network.
func TestCallers(t *testing.T) {
	web := identity.Identity{TrustDomain: "td", Namespace: "ns", ServiceAccount: "web"}
	one, other := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 1}
	for _, c := range []struct {
		a, b Caller
		same bool
	}{
		{Of(web, one), Of(web, other), true},
		{Of(web, one), Of(identity.Identity{}, one), false},
		{at("10.0.0.1:1"), at("10.0.0.1:2"), true},
		{at("10.0.0.1:1"), at("10.0.0.2:1"), false},
		{at("10.0.0.1:1"), at("[::ffff:10.0.0.1]:1"), true},
		{at("[2001:db8::1]:1"), at("[2001:db8::ffff:2]:1"), true},
		{at("[2001:db8::1]:1"), at("[2001:db8:0:1::1]:1"), false},
		{at("[fe80::1%eth0]:1"), at("[fe80::1%eth1]:1"), true},
		{Of(identity.Identity{}, &net.UnixAddr{Name: "x"}), Caller{}, true},
	} {
		if (c.a == c.b) != c.same {
			t.Errorf("%s, %s: the same: %v", c.a, c.b, !c.same)
		}
	}
}

// A caller has ten seconds' worth at once, then its rate; another one has its own.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRate(5, time.Now)
		take := func(c Caller) (n int) {
			for r.Take(c, 1) {
				n++
			}
			return n
		}
		for i, want := range []int{50, 5, 5} {
			if got := take(named("greedy")); got != want {
				t.Errorf("second %d: %d, want %d", i, got, want)
			}
			time.Sleep(time.Second)
		}
		if got := take(named("modest")); got != 50 {
			t.Errorf("another one has %d", got)
		}
		if r.Take(named("modest"), 0) || !r.Take(named("third"), 1000) || r.Take(named("third"), 0) {
			t.Error("what is too much is not owed")
		}
		if !NewRate(0, time.Now).Take(named("greedy"), 1<<30) {
			t.Error("0 is a limit")
		}
	})
}

// What is remembered of callers goes when they have their allowance again; beyond a number of them others share one.
func TestRateIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRate(1, time.Now)
		for i := range maxCallers {
			r.Take(named(fmt.Sprint(i)), 1)
		}
		time.Sleep(10 * time.Second)
		r.Take(named("later"), 1)
		if len(r.full) != 1 {
			t.Errorf("%d are remembered", len(r.full))
		}
		for i := range maxCallers {
			r.Take(named(fmt.Sprint(i)), 5)
		}
		if !r.Take(named("new"), 20) || r.Take(named("newer"), 1) || len(r.full) > maxCallers+1 {
			t.Errorf("%d are remembered", len(r.full))
		}
		if !r.Take(named("7"), 1) {
			t.Error("one that is known shares its allowance")
		}
	})
}

// A caller has its share, and no more than all may have; what is left is counted no more.
func TestShare(t *testing.T) {
	s := NewShare(3, 2)
	greedy, other, third := named("greedy"), named("other"), named("third")
	for i, want := range []bool{true, true, false} {
		if s.Enter(greedy) != want {
			t.Error(i, !want)
		}
	}
	if !s.Enter(other) || s.Enter(third) {
		t.Error("what is left for others")
	}
	s.Leave(greedy)
	if !s.Enter(third) {
		t.Error("what was given back is not there")
	}
	for _, c := range []Caller{greedy, other, third} {
		s.Leave(c)
	}
	if n, by := s.Taken(); n != 0 || by != 0 {
		t.Error(n, by)
	}
}

// Rounds give one to each caller, in the order of each; who leaves is passed over.
func TestRounds(t *testing.T) {
	var r Rounds[int]
	a, b, c := named("a"), named("b"), named("c")
	for i := range 4 {
		r.Put(a, i)
	}
	gone := r.Put(b, 10)
	r.Put(b, 11)
	r.Put(c, 20)
	r.Remove(gone)
	if last, ok := r.Drop(c); !ok || last != 3 {
		t.Error("the last one of who has most goes first:", last, ok)
	}
	if last, ok := r.Drop(a); ok {
		t.Error("its own caller's:", last)
	}
	var got []int
	for r.Len() > 0 {
		one, _ := r.Take()
		got = append(got, one)
	}
	if !slices.Equal(got, []int{0, 11, 20, 1, 2}) {
		t.Error(got)
	}
	if _, ok := r.Take(); ok || len(r.lines) != 0 || r.order.Len() != 0 {
		t.Error("something is left")
	}
}

// A caller that waits a thousand times delays another by one turn, and who gives up leaves its turn to others.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(1)
		if err := turns.Wait(t.Context(), named("first")); err != nil {
			t.Fatal(err)
		}
		var order []string
		wait := func(ctx context.Context, name string) {
			go func() {
				if turns.Wait(ctx, named(name)) == nil {
					order = append(order, name)
					turns.Done()
				}
			}()
			synctest.Wait()
		}
		short, cancel := context.WithCancel(t.Context())
		wait(short, "gone")
		for range 3 {
			wait(t.Context(), "greedy")
		}
		wait(t.Context(), "modest")
		cancel()
		synctest.Wait()
		if turns.Waiting() != 4 {
			t.Error(turns.Waiting(), "wait")
		}
		turns.Done()
		synctest.Wait()
		if !slices.Equal(order, []string{"greedy", "modest", "greedy", "greedy"}) || turns.free != 1 {
			t.Error(order, turns.free)
		}
	})
}

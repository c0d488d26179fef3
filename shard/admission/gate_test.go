package admission

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// guest is a Client that notes what happens to it.
type guest struct {
	id     uint64
	log    *[]string
	onAsk  func()
	atGate AtGate
}

func (g *guest) Attach() {
	*g.log = append(*g.log, "attach "+string(rune('a'+g.id)))
	if g.onAsk != nil {
		g.onAsk()
	}
}

func (g *guest) Detach()         { *g.log = append(*g.log, "detach "+string(rune('a'+g.id))) }
func (g *guest) AtGate() *AtGate { return &g.atGate }

func (g *guest) join(gate *Gate, p Priority) { gate.Join(g, TurnOf(g.id, time.Unix(1000, 0), p), p) }

// A planner that answers from within Attach does not block, and its answers do not nest however many wait.
func TestAPlannerThatAnswersAtOnce(t *testing.T) {
	var log []string
	gate, depth := NewGate(0), 0
	for i := range 1000 {
		g := &guest{id: uint64(i) % 26, log: &log}
		g.onAsk = func() {
			if depth++; depth > 1 {
				t.Fatal("an answer lets the next client in before it returns")
			}
			gate.Answered(g)
			depth--
		}
		g.join(gate, NewProxy)
	}
	gate.SetLimit(1)
	if len(log) != 1000 || gate.Len() != 0 {
		t.Errorf("%d of 1000 are attached, %d wait", len(log), gate.Len())
	}
}

// Clients are attached by their turns, as many as the limit allows; one is while memory is short.
func TestOrderAtTheGate(t *testing.T) {
	var log []string
	gate := NewGate(1)
	a, b, c, d := &guest{0, &log, nil, AtGate{}}, &guest{1, &log, nil, AtGate{}}, &guest{2, &log, nil, AtGate{}},
		&guest{3, &log, nil, AtGate{}}
	a.join(gate, CurrentProxy)
	b.join(gate, CurrentProxy)
	c.join(gate, StaleProxy)
	d.join(gate, NewProxy)
	gate.Answered(a)
	gate.Answered(a) // again
	gate.Ration(true)
	gate.SetLimit(9)
	gate.Leave(d)
	gate.Ration(false)
	gate.Leave(b)
	want := []string{"attach a", "attach d", "detach d", "attach c", "attach b", "detach b"}
	if !slices.Equal(log, want) {
		t.Errorf("%q, want %q", log, want)
	}
}

// A client that leaves while it waits is never attached; one that leaves while it is being attached is detached after
// that.
func TestLeavingTheGate(t *testing.T) {
	var log []string
	gate := NewGate(0)
	a, b := &guest{0, &log, nil, AtGate{}}, &guest{1, &log, nil, AtGate{}}
	a.join(gate, NewProxy)
	b.join(gate, NewProxy)
	gate.Leave(a)
	b.onAsk = func() { gate.Leave(b) }
	gate.SetLimit(1)
	if want := []string{"attach b", "detach b"}; !slices.Equal(log, want) || gate.asked != 0 {
		t.Errorf("%q, want %q; the planner is asked for %d", log, want, gate.asked)
	}
}

// Clients come, are answered and leave on many goroutines: each is attached and detached once at most, in that order,
// and the Gate is empty in the end.
func TestTheGateUnderLoad(t *testing.T) {
	gate := NewGate(3)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			var mu sync.Mutex
			attached, detached := 0, 0
			c := &counted{attach: func(c *counted) {
				mu.Lock()
				attached++
				mu.Unlock()
				if i%2 == 0 {
					gate.Answered(c)
				}
			}, detach: func() {
				mu.Lock()
				defer mu.Unlock()
				if detached++; attached != 1 || detached != 1 {
					t.Errorf("attached %d times, detached %d times", attached, detached)
				}
			}}
			gate.Join(c, TurnOf(uint64(i), time.Unix(0, 0), NewProxy), NewProxy)
			gate.Answered(c)
			gate.Leave(c)
		})
	}
	wg.Wait()
	if gate.Len() != 0 || gate.asked != 0 {
		t.Errorf("%d wait, the planner is asked for %d", gate.Len(), gate.asked)
	}
}

type counted struct {
	attach func(*counted)
	detach func()
	atGate AtGate
}

func (c *counted) Attach()         { c.attach(c) }
func (c *counted) Detach()         { c.detach() }
func (c *counted) AtGate() *AtGate { return &c.atGate }

// Turns are ordered by when clients came and what they need, and no two are equal.
func TestTurns(t *testing.T) {
	came := time.Unix(1000, 0)
	first := TurnOf(2, came, NewProxy)
	for name, later := range map[string]Turn{
		"later":              TurnOf(1, came.Add(time.Nanosecond), NewProxy),
		"with less need":     TurnOf(1, came, StaleProxy),
		"of the same moment": TurnOf(3, came, NewProxy),
	} {
		if !first.Before(later) || later.Before(first) {
			t.Errorf("one that came %s is not after the first", name)
		}
	}
}

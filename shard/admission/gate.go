package admission

import (
	"slices"
	"sync"
)

// Client is one that connects, as the Gate sees it.
type Client interface {
	// Attach asks the planner for what the client should have. The planner may answer before Attach returns.
	Attach()
	// Detach tells the planner that the client has left. It is called after Attach, if that was called.
	Detach()
	// AtGate returns the state that the Gate keeps of the client.
	AtGate() *AtGate
}

// AtGate is what the Gate keeps of a Client. The zero value is that of one that has not come yet. Guarded by the Gate's
// mu.
type AtGate struct {
	waiter   *Waiter[Client] // while it waits
	asked    bool            // the planner is asked for it and has not answered
	attached bool            // Attach has returned
	left     bool
}

// Gate is where clients wait until the planner is asked for them: a few at a time, so that a change of configuration
// never waits behind a crowd that connects, and the one that needs most goes first. Safe for concurrent use. No method
// blocks, unless a Client's Attach does.
type Gate struct {
	mu sync.Mutex
	// Guarded by mu.
	line    *Line[Client]
	most    int  // that the planner is asked for at once
	asked   int  // clients that the planner is asked for and has not answered
	short   bool // memory is short: one client at a time
	passing bool // somebody lets clients through, and will see what has changed
}

// NewGate makes a Gate that has the planner asked for at most so many clients at once.
func NewGate(most int) *Gate { return &Gate{line: NewLine[Client](), most: most} }

// SetLimit changes how many clients the planner is asked for at once.
func (g *Gate) SetLimit(most int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.most = most
	g.pass()
}

// Join has a client attached when its turn comes, perhaps before Join returns.
func (g *Gate) Join(c Client, t Turn, p Priority) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := &Waiter[Client]{Client: c, Turn: t, Priority: p}
	c.AtGate().waiter = w
	g.line.Put(w)
	g.pass()
}

// Answered notes that the planner has answered a client, perhaps again.
func (g *Gate) Answered(c Client) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answered(c.AtGate())
}

// Leave forgets a client: it is detached, or taken out of the line.
func (g *Gate) Leave(c Client) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := c.AtGate()
	at.left = true
	if at.waiter != nil {
		g.line.Remove(at.waiter)
		at.waiter = nil
		return
	}
	if at.attached {
		g.unlocked(c.Detach)
	} // else it is being attached, and detached after that
	g.answered(at)
}

// answered takes a client from those that the planner is asked for. The caller holds mu.
func (g *Gate) answered(at *AtGate) {
	if at.asked {
		at.asked = false
		g.asked--
		g.pass()
	}
}

// Ration has clients attached one at a time, or no longer.
func (g *Gate) Ration(short bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.short = short
	g.pass()
}

// limit returns how many clients the planner may be asked for now. The caller holds mu.
func (g *Gate) limit() int {
	if g.short {
		return 1
	}
	return g.most
}

// pass lets through as many as the planner may be asked for. The caller holds mu, which is released while a client is
// attached: a planner that answers at once calls Answered from within Attach. One caller passes at a time, so that such
// answers do not nest, and clients are attached in the order of their turns.
func (g *Gate) pass() {
	if g.passing {
		return
	}
	g.passing = true
	defer func() { g.passing = false }()
	for g.asked < g.limit() && g.line.Len() > 0 {
		c := g.line.Take().Client
		at := c.AtGate()
		at.waiter, at.asked = nil, true
		g.asked++
		g.unlocked(c.Attach)
		at.attached = true
		if at.left {
			g.unlocked(c.Detach)
		}
	}
}

// unlocked calls f without mu, which the caller holds.
func (g *Gate) unlocked(f func()) {
	g.mu.Unlock()
	defer g.mu.Lock()
	f()
}

// Waiting returns those that wait, in no order that means anything.
func (g *Gate) Waiting() []*Waiter[Client] {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(g.line.All())
}

// Len returns how many wait.
func (g *Gate) Len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.line.Len()
}

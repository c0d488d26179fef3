package admission

import (
	"slices"
	"sync"
)

// Client is a client that connects, as the Gate sees it.
type Client interface {
	// Attach asks the planner for what the client should have. The planner may answer before Attach returns.
	Attach()
	// Detach tells the planner that the client has left. It is called after Attach, if that was called.
	Detach()
	// AtGate returns the state that the Gate keeps of the client.
	AtGate() *AtGate
}

// AtGate is what the Gate keeps of a Client. The zero value is for a client that has not come yet. Guarded by the
// Gate's mu.
type AtGate struct {
	waiter   *Waiter[Client] // while it waits
	asked    bool            // the planner is asked for it and has not answered
	attached bool            // Attach has returned
	left     bool
}

// Gate lets a few clients at a time through to the planner, those that need it most first, so that a change of
// configuration never waits behind a crowd that connects. Safe for concurrent use. No method blocks, unless a Client's
// Attach does.
type Gate struct {
	mu sync.Mutex
	// Guarded by mu.
	line    *Line[Client]
	most    int  // how many clients the planner may be asked for at once
	asked   int  // clients that the planner is asked for and has not answered
	short   bool // memory is short: one client at a time
	passing bool // pass runs, and will see what has changed
}

// NewGate makes a Gate that asks the planner for at most that many clients at once.
func NewGate(most int) *Gate { return &Gate{line: NewLine[Client](), most: most} }

// SetLimit changes how many clients the planner is asked for at once.
func (g *Gate) SetLimit(most int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.most = most
	g.pass()
}

// Join puts a client in line. The Gate attaches it when its turn comes, perhaps before Join returns.
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

// Leave forgets a client: it detaches it, or takes it out of the line.
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
	} // else it is being attached, and pass detaches it after that
	g.answered(at)
}

// answered takes a client out of those for which the planner has not answered. The caller holds mu.
func (g *Gate) answered(at *AtGate) {
	if at.asked {
		at.asked = false
		g.asked--
		g.pass()
	}
}

// Ration turns the attaching of one client at a time on or off.
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

// pass lets through as many clients as the planner may be asked for. The caller holds mu; pass releases it while it
// attaches a client: a planner that answers at once calls Answered from within Attach. One caller passes at a time, so
// that such answers do not nest, and clients are attached in the order of their turns.
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

// Waiting returns the clients that wait, in no particular order.
func (g *Gate) Waiting() []*Waiter[Client] {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(g.line.All())
}

// Len returns how many clients wait.
func (g *Gate) Len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.line.Len()
}

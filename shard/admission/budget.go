package admission

import (
	"sync"
	"sync/atomic"
)

// Budget bounds the bytes of answers that are on their way to clients that connect. Bytes count from when they are
// given to a stream until the client shows that it has read them (it answers, or asks for the next type), or until its
// time is up. That they are written is not enough: what thousands of clients have not read lies in sockets, which is
// memory of the kernel, and when that runs out connections break. A worker that finds the Budget used up waits; the one
// with the earliest Turn goes on first. While memory is short, a single client uses it up.
//
// Safe for concurrent use. No method blocks.
type Budget struct {
	// Immutable after NewBudget.
	wake []func() // by worker

	mu sync.Mutex
	// Guarded by mu.
	limit   int
	used    int
	short   bool   // memory is short: one client at a time
	granted int    // workers that may answer a client and have not called Answered yet
	waiting []Turn // of each worker; zero when it does not wait
}

// Debt is what one client was given and still counts in a Budget.
type Debt struct {
	// owes is set while bytes is not zero, so that Owes needs no lock.
	owes atomic.Bool
	// Guarded by the Budget's mu.
	bytes int
}

// Owes reports whether the client has a debt.
func (d *Debt) Owes() bool { return d.owes.Load() }

// NewBudget makes a Budget of so many bytes. wake wakes each of the workers.
func NewBudget(limit int, wake []func()) *Budget {
	return &Budget{limit: limit, wake: wake, waiting: make([]Turn, len(wake))}
}

// SetLimit changes how many bytes there may be.
func (b *Budget) SetLimit(limit int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limit = limit
	b.next()
}

// Ask reports whether a worker may answer the client of that Turn now; if so, the worker calls Answered when it has. If
// not, the worker is woken when it may.
func (b *Budget) Ask(worker int, t Turn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting[worker] = t
	if b.open() && b.first() == worker {
		b.waiting[worker] = Turn{}
		b.granted++
		b.next()
		return true
	}
	b.next()
	return false
}

// Answered notes that a worker has answered the client that it asked for, and has spent what that took.
func (b *Budget) Answered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.granted--
	b.next()
}

// Withdraw tells the Budget that a worker has nobody to answer any more.
func (b *Budget) Withdraw(worker int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting[worker] != (Turn{}) {
		b.waiting[worker] = Turn{}
		b.next()
	}
}

// Full reports whether somebody has to wait.
func (b *Budget) Full() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.open()
}

// open reports whether another client may be answered. While memory is short this is so only once the clients before it
// have read what they were given; one may always go on. The caller holds mu.
func (b *Budget) open() bool {
	if b.short {
		return b.used == 0 && b.granted == 0
	}
	return b.used < b.limit
}

// Ration turns the answering of one client at a time on or off.
func (b *Budget) Ration(short bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.short != short {
		b.short = short
		b.next()
	}
}

// Spend counts n bytes that a client was given.
func (b *Budget) Spend(d *Debt, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d.owes.Store(true)
	d.bytes += n
	b.used += n
}

// Settle notes that a client has read what it was given, or that its time is up.
func (b *Budget) Settle(d *Debt) {
	if !d.owes.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	d.owes.Store(false)
	b.used -= d.bytes
	d.bytes = 0
	b.next()
}

// next wakes the worker that may go on. The caller holds mu.
func (b *Budget) next() {
	if !b.open() {
		return
	}
	if w := b.first(); w >= 0 {
		b.wake[w]()
	}
}

// first returns the waiting worker with the earliest Turn, or -1. The caller holds mu.
func (b *Budget) first() int {
	first := -1
	for w, t := range b.waiting {
		if t != (Turn{}) && (first < 0 || t.Before(b.waiting[first])) {
			first = w
		}
	}
	return first
}

// Underway returns how many bytes are under way, and how many there may be.
func (b *Budget) Underway() (bytes, limit int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used, b.limit
}

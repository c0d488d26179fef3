package admission

import (
	"sync"
	"sync/atomic"
)

// Budget bounds the bytes of answers to clients that connect, from when they are given to streams until the client
// shows that it has read them (it answers, or asks for the next type) or has had its time: written is not enough, for
// what fills the sockets of thousands of clients is the kernel's memory, and where that ends connections break. Workers
// that find it used up wait; the one with the earliest Turn goes on first. While memory is short it is used up by a
// single client.
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
	granted int    // workers that may answer a client and have not said yet what it was given
	waiting []Turn // of each worker; zero when it does not wait
}

// Debt is what one client was given that counts in a Budget.
type Debt struct {
	// owes is set while bytes is not zero, so that looking costs no lock.
	owes atomic.Bool
	// Guarded by the Budget's mu.
	bytes int
}

// Owes reports whether there is any.
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

// Withdraw notes that a worker has nobody to answer any more.
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

// open reports whether another client may be answered. While memory is short one is, once those before it have what
// they were given: somebody always goes on. The caller holds mu.
func (b *Budget) open() bool {
	if b.short {
		return b.used == 0 && b.granted == 0
	}
	return b.used < b.limit
}

// Ration has clients answered one at a time, or no longer.
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

// Settle notes that a client has what it was given, or has had its time.
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

package shard

import "sync"

// budget bounds the bytes of answers to proxies that connect, from when they are given to streams until the client
// shows that it has read them (it answers, or asks for the next type) or has had its time: written is not enough, for
// what fills the sockets of thousands of clients is the kernel's memory, and where that ends connections break. Workers
// that find it used up wait; the one with the oldest claim goes on first. While memory is short it is used up by a
// single proxy.
type budget struct {
	// Immutable after New.
	most int
	wake []func() // the workers

	mu sync.Mutex
	// Guarded by mu.
	used    int
	short   bool    // memory is short: one proxy at a time
	waiting []claim // of each worker; zero when it does not wait
}

// ask reports whether a worker may answer the proxy of that claim now. If not, the worker is woken when it may.
func (b *budget) ask(worker int, c claim) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting[worker] = c
	if b.open() && b.first() == worker {
		b.waiting[worker] = claim{}
		b.next()
		return true
	}
	b.next()
	return false
}

// withdraw is that a worker has nobody to answer any more.
func (b *budget) withdraw(worker int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting[worker] != (claim{}) {
		b.waiting[worker] = claim{}
		b.next()
	}
}

// full reports whether somebody has to wait.
func (b *budget) full() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.open()
}

// open reports whether another proxy may be answered. While memory is short one is, once those before it have what they
// were given: somebody always goes on. The caller holds mu.
func (b *budget) open() bool {
	if b.short {
		return b.used == 0
	}
	return b.used < b.most
}

// ration has proxies answered one at a time, or no longer.
func (b *budget) ration(short bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.short != short {
		b.short = short
		b.next()
	}
}

// spend counts n bytes that a member was given.
func (b *budget) spend(m *member, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m.owes.Store(true)
	m.debt += n
	b.used += n
}

// settle is that a member has what it was given, or has had its time.
func (b *budget) settle(m *member) {
	if !m.owes.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	m.owes.Store(false)
	b.used -= m.debt
	m.debt = 0
	b.next()
}

// next wakes the worker that may go on. The caller holds mu.
func (b *budget) next() {
	if !b.open() {
		return
	}
	if w := b.first(); w >= 0 {
		b.wake[w]()
	}
}

// first is the waiting worker with the oldest claim, or -1. The caller holds mu.
func (b *budget) first() int {
	first := -1
	for w, c := range b.waiting {
		if c != (claim{}) && (first < 0 || c.before(b.waiting[first])) {
			first = w
		}
	}
	return first
}

// bytes are those that are under way.
func (b *budget) bytes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

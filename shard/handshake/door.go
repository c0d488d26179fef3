package handshake

import (
	"errors"
	"net"
	"sync"
	"time"

	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/identity/quota"
)

const (
	// pace is the time between two looks at the handshakes that are under way.
	pace = 500 * time.Millisecond
	// patient and impatient are how many looks may find a handshake waiting for its client, the latter while other
	// connections wait.
	patient, impatient = 20, 10
)

// Options are the settings of a Door.
type Options struct {
	// Waiting is how many connections are accepted and wait, Underway how many handshakes are under way at once, and
	// Computing how many of these compute at the same moment.
	Waiting, Underway, Computing int
	// AfterFunc calls f after d, once, unless stop is called before; it is time.AfterFunc. Without it no client is
	// given up.
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
}

// Door is a net.Listener of connections that begin with TLS. What serves it must use its Credentials.
type Door struct {
	// Immutable after Listen.
	net.Listener
	options   Options
	turns     *quota.Turns
	accepting sync.WaitGroup

	mu sync.Mutex
	// Guarded by mu.
	changed  *sync.Cond
	waiting  quota.Rounds[*arrival]
	underway map[*arrival]struct{}
	failed   error // of the listener, until Accept has returned it
	closed   bool
	stop     func() bool // of the next look; nil for none
	stats    Stats
}

// Stats are counts since the start, and of what is now.
type Stats struct {
	// Waiting are the connections that wait now, Underway the handshakes.
	Waiting, Underway int
	// Done and Failed are the handshakes that have ended, Slow those whose clients were given up. Gone are the
	// connections whose clients hung up before it was their turn, Dropped those that had to make room for other
	// addresses.
	Done, Failed, Slow, Gone, Dropped uint64
}

// Listen makes a Door of a listener, which it accepts from until Close.
func Listen(l net.Listener, o Options) *Door {
	d := &Door{Listener: l, options: o, turns: quota.NewTurns(o.Computing), underway: map[*arrival]struct{}{}}
	d.changed = sync.NewCond(&d.mu)
	d.accepting.Go(d.accept)
	return d
}

// accept takes connections off the kernel's hands, as far as there is room.
func (d *Door) accept() {
	for {
		conn, err := d.Listener.Accept()
		if err != nil {
			if d.fail(err); errors.Is(err, net.ErrClosed) || d.isClosed() {
				return
			}
			continue
		}
		d.put(conn)
	}
}

// fail leaves an error of the listener to Accept, and returns when that has it: who serves decides when to go on.
func (d *Door) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed = err
	d.changed.Broadcast()
	for d.failed != nil && !d.closed {
		d.changed.Wait()
	}
}

func (d *Door) isClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// put lets a connection wait. It returns when there is room for that.
func (d *Door) put(conn net.Conn) {
	a := &arrival{Conn: conn, door: d, from: quota.Of(identity.Identity{}, conn.RemoteAddr())}
	d.mu.Lock()
	defer d.mu.Unlock()
	for !d.closed && d.waiting.Len() >= d.options.Waiting {
		if other, ok := d.waiting.Drop(a.from); ok {
			d.stats.Dropped++
			other.Conn.Close()
			continue
		}
		d.changed.Wait()
	}
	if d.closed {
		conn.Close()
		return
	}
	d.waiting.Put(a.from, a)
	d.changed.Broadcast()
}

// Accept returns the next connection, when its handshake may begin.
func (d *Door) Accept() (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		switch {
		case d.closed:
			return nil, net.ErrClosed
		case d.waiting.Len() > 0 && len(d.underway) < d.options.Underway:
			a, _ := d.waiting.Take()
			d.changed.Broadcast()
			if hungUp(a.Conn) {
				d.stats.Gone++
				a.Conn.Close()
				continue
			}
			d.underway[a] = struct{}{}
			a.shaking.Store(true)
			d.watch()
			return a, nil
		case d.failed != nil:
			err := d.failed
			d.failed = nil
			d.changed.Broadcast()
			return nil, err
		}
		d.changed.Wait()
	}
}

// Close ends the listener, and the connections that wait.
func (d *Door) Close() error {
	err := d.Listener.Close()
	d.mu.Lock()
	d.closed = true
	for a, ok := d.waiting.Take(); ok; a, ok = d.waiting.Take() {
		a.Conn.Close()
	}
	d.changed.Broadcast()
	d.mu.Unlock()
	d.accepting.Wait()
	return err
}

// end notes that a handshake is over: done, or failed. It does nothing when it is called again.
func (d *Door) end(a *arrival, done bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.underway[a]; !ok {
		return
	}
	delete(d.underway, a)
	a.shaking.Store(false)
	switch {
	case done:
		d.stats.Done++
	case a.late <= patient: // else it was given up, and is counted
		d.stats.Failed++
	}
	if len(d.underway) == 0 && d.stop != nil {
		d.stop()
		d.stop = nil
	}
	d.changed.Broadcast()
}

// watch sees to it that a look is taken. The caller holds mu.
func (d *Door) watch() {
	if d.stop == nil && d.options.AfterFunc != nil {
		d.stop = d.options.AfterFunc(pace, d.look)
	}
}

// look gives up handshakes whose clients are slow. It is called by the timer.
func (d *Door) look() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stop = nil
	limit := patient
	if d.waiting.Len() > 0 {
		limit = impatient
	}
	for a := range d.underway {
		if a.idle.Load() {
			a.late++
		}
		if a.late >= limit && a.late <= patient {
			a.late = patient + 1 // once
			d.stats.Slow++
			a.Conn.Close()
		}
	}
	if len(d.underway) > 0 {
		d.watch()
	}
}

// Stats returns the counts.
func (d *Door) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.stats
	s.Waiting, s.Underway = d.waiting.Len(), len(d.underway)
	return s
}

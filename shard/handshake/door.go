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
	// pace is the interval of checks for slow handshakes.
	pace = 500 * time.Millisecond
	// patient and impatient are how many checks may find a handshake waiting for its client; impatient applies while
	// other connections wait.
	patient, impatient = 20, 10
)

// Options are the settings of a Door.
type Options struct {
	// Waiting is how many accepted connections may wait, Underway how many handshakes run at the same time, and
	// Computing how many of these compute at the same moment.
	Waiting, Underway, Computing int
	// AfterFunc calls f once after d, unless stop is called before; it is time.AfterFunc. nil means that slow clients
	// are never disconnected.
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
}

// Door is a net.Listener for TLS connections. The server that accepts from it must use its Credentials.
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
	failed   error // an error of the listener that Accept has yet to return
	closed   bool
	stop     func() bool // cancels the next check; nil if none is scheduled
	stats    Stats
}

// Stats are counts since the start, and current numbers.
type Stats struct {
	// Waiting is the number of connections that wait now, Underway that of handshakes in progress.
	Waiting, Underway int
	// Done and Failed count handshakes that have ended, Slow those that were ended because the client was slow. Gone
	// counts connections whose clients hung up before their turn, Dropped those that made room for other addresses.
	Done, Failed, Slow, Gone, Dropped uint64
}

// Listen makes a Door that accepts from a listener until Close.
func Listen(l net.Listener, o Options) *Door {
	d := &Door{Listener: l, options: o, turns: quota.NewTurns(o.Computing), underway: map[*arrival]struct{}{}}
	d.changed = sync.NewCond(&d.mu)
	d.accepting.Go(d.accept)
	return d
}

// accept accepts connections from the kernel while there is room for them.
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

// fail passes an error of the listener to Accept, and returns when Accept has returned it, because the server decides
// when to accept again.
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

// put adds a connection to those that wait. It blocks while there is no room.
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

// Accept waits for the next connection whose handshake may begin, and returns it.
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

// Close closes the listener and the connections that wait.
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

// end records the end of a handshake and whether it succeeded. Further calls for the same connection do nothing.
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
	case a.late <= patient: // otherwise it is already counted as Slow
		d.stats.Failed++
	}
	if len(d.underway) == 0 && d.stop != nil {
		d.stop()
		d.stop = nil
	}
	d.changed.Broadcast()
}

// watch schedules the next check, if none is scheduled. The caller holds mu.
func (d *Door) watch() {
	if d.stop == nil && d.options.AfterFunc != nil {
		d.stop = d.options.AfterFunc(pace, d.look)
	}
}

// look closes connections whose clients are too slow. The timer calls it.
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
			a.late = patient + 1 // so that it is closed once
			d.stats.Slow++
			a.Conn.Close()
		}
	}
	if len(d.underway) > 0 {
		d.watch()
	}
}

// Stats returns the current counts.
func (d *Door) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.stats
	s.Waiting, s.Underway = d.waiting.Len(), len(d.underway)
	return s
}

package grpcstream

import (
	"context"
	"sync"
	"sync/atomic"
)

const (
	// smallRequest is the largest request that is received without asking reception. Nearly all are smaller: the first
	// request of an Envoy has some 80 KiB, and one that names 1,000 clusters 50 KiB.
	smallRequest = 128 << 10
	// spareShare is how many times its own size must be free, besides, for a large request to be received at once.
	spareShare = 7
)

// reception bounds the bytes of all large requests that are being received, or have been received and are not read yet,
// whatever their clients do. One whose place is not free waits before grpc is asked for it: until then the stream's
// window keeps its client from sending more than 64 KiB.
//
// A request has a place at once while eight times its size is free, so that very large ones cannot keep the others out:
// they never have more than the half that smaller ones do not need. When places become free, the smallest that waits
// goes first. One that is larger than all that there is goes when it is alone. Who waits is not forgotten: see
// idleWatch, which ends requests that do not end.
type reception struct {
	// Immutable after newReception.
	most int

	// waits is how many wait.
	waits atomic.Int32

	mu sync.Mutex
	// Guarded by mu.
	held    int
	waiting []*arrival // in the order in which they came
}

// arrival is a request that waits to be received.
type arrival struct {
	// Immutable.
	bytes int
	let   chan struct{} // closed when it may come
}

func newReception(most int) *reception { return &reception{most: most} }

// enter returns when n bytes may be received, or when ctx has ended, with its error. After nil, leave is to be called.
func (r *reception) enter(ctx context.Context, n int) error {
	if n <= smallRequest {
		return nil
	}
	r.mu.Lock()
	if r.fits(n) {
		r.held += n
		r.mu.Unlock()
		return nil
	}
	a := &arrival{n, make(chan struct{})}
	r.waiting = append(r.waiting, a)
	r.waits.Add(1)
	r.mu.Unlock()
	select {
	case <-a.let:
		return nil
	case <-ctx.Done():
		r.giveUp(a)
		return ctx.Err()
	}
}

// leave gives back the place of a request of n bytes.
func (r *reception) leave(n int) {
	if n <= smallRequest {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held -= n
	r.admit()
}

// fits reports whether n more bytes have a place. The caller holds mu.
func (r *reception) fits(n int) bool {
	return r.held == 0 || r.held+n+spareShare*n <= r.most
}

// admit lets in who has a place now. The caller holds mu.
func (r *reception) admit() {
	for len(r.waiting) > 0 {
		first := 0
		for i, a := range r.waiting {
			if a.bytes < r.waiting[first].bytes {
				first = i
			}
		}
		a := r.waiting[first]
		if !r.fits(a.bytes) {
			return
		}
		r.forget(first)
		r.held += a.bytes
		close(a.let)
	}
}

// giveUp is the end of a's wait because its stream has ended.
func (r *reception) giveUp(a *arrival) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.waiting {
		if r.waiting[i] == a {
			r.forget(i)
			return
		}
	}
	r.held -= a.bytes // it was let in at the same moment
	r.admit()
}

// forget takes the i-th out of those that wait. The caller holds mu.
func (r *reception) forget(i int) {
	r.waiting = append(r.waiting[:i], r.waiting[i+1:]...)
	r.waits.Add(-1)
}

// bytes returns how many bytes of large requests have a place.
func (r *reception) bytes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}

package fleet

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// busyRound is the length of one turn of work and rest.
const busyRound = 10 * time.Millisecond

// Busy keeps processors busy and does nothing else. It shows how much of a server's slowdown comes from the processor
// time that clients use.
type Busy struct {
	stop    chan struct{}
	running sync.WaitGroup
}

// StartBusy uses as much time as that number of processors has, spread over all of them.
func StartBusy(processors float64) *Busy {
	b := &Busy{stop: make(chan struct{})}
	all := runtime.GOMAXPROCS(0)
	work := time.Duration(min(1, processors/float64(all)) * float64(busyRound))
	for range all {
		b.running.Go(func() { b.spin(work) })
	}
	return b
}

// spin works for a part of each round.
func (b *Busy) spin(work time.Duration) {
	rounds := time.NewTicker(busyRound)
	defer rounds.Stop()
	for {
		select {
		case <-b.stop:
			return
		case <-rounds.C:
		}
		for began := time.Now(); time.Since(began) < work; {
			continue
		}
	}
}

// Await returns at once.
func (b *Busy) Await(context.Context, int) (time.Time, error) { return time.Now(), nil }

// Close stops the work.
func (b *Busy) Close() {
	close(b.stop)
	b.running.Wait()
}

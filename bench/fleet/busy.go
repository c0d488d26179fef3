package fleet

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// busyRound is how often Busy turns from work to rest and back.
const busyRound = 10 * time.Millisecond

// Busy keeps processors busy and does nothing else: it shows what clients cost a server by the processors alone that
// they take from it.
type Busy struct {
	stop    chan struct{}
	running sync.WaitGroup
}

// StartBusy keeps so many processors busy: all that there are, for a part of the time.
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

// Close ends the work.
func (b *Busy) Close() {
	close(b.stop)
	b.running.Wait()
}

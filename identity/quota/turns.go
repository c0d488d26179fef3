package quota

import (
	"context"
	"sync"
)

// Turns lets a limited number of callers work at the same time. The others wait in rounds.
type Turns struct {
	mu sync.Mutex
	// Guarded by mu.
	free    int
	waiting Rounds[chan struct{}] // each is closed when its turn comes
}

// NewTurns returns Turns for this many at the same time, at least 1.
func NewTurns(most int) *Turns { return &Turns{free: max(most, 1)} }

// Wait waits for the caller's turn, which lasts until Done is called. It returns the error of ctx if that ends first.
func (t *Turns) Wait(ctx context.Context, c Caller) error {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	place := t.waiting.Put(c, turn)
	t.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-turn: // the turn came at the same moment
		return nil
	default:
		t.waiting.Remove(place)
		return ctx.Err()
	}
}

// Done ends a turn.
func (t *Turns) Done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if next, ok := t.waiting.Take(); ok {
		close(next)
		return
	}
	t.free++
}

// Waiting returns how many callers wait.
func (t *Turns) Waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting.Len()
}

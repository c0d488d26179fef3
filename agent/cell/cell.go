// Package cell holds the newest of something for those who read it and wait for the next.
package cell

import "sync"

// Cell holds the newest value. The zero value is empty. Safe for concurrent use.
type Cell[T any] struct {
	mu sync.Mutex
	// Guarded by mu.
	value   *T
	changed chan struct{}
}

// Get returns the newest value, nil while there is none, and a channel that is closed when there is a newer one.
func (c *Cell[T]) Get() (*T, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	return c.value, c.changed
}

// Set stores a value and wakes who waits for one.
func (c *Cell[T]) Set(v *T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.value = v
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

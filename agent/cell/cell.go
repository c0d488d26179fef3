// Package cell holds the newest version of a value, for readers that also want to wait for the next version.
package cell

import "sync"

// Cell holds the newest value. The zero value is empty. Safe for concurrent use.
type Cell[T any] struct {
	mu sync.Mutex
	// Guarded by mu.
	value   *T
	changed chan struct{}
}

// Get returns the newest value, or nil if none was set yet, and a channel that is closed when a newer one is set.
func (c *Cell[T]) Get() (*T, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	return c.value, c.changed
}

// Set stores a value and wakes all who wait for one. It does not block.
func (c *Cell[T]) Set(v *T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.value = v
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

package kube

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// panics counts recovered panics, and remembers which units were logged. The zero value is ready to use.
type panics struct {
	mu sync.Mutex
	// Guarded by mu.
	count  int
	logged map[string]bool
}

// note counts a panic over a unit, and reports whether it is the unit's first.
func (p *panics) note(unit string) (first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	if first = !p.logged[unit] && len(p.logged) < maxLogged; first {
		if p.logged == nil {
			p.logged = map[string]bool{}
		}
		p.logged[unit] = true
	}
	return first
}

// maxLogged bounds the number of units whose panics are logged.
const maxLogged = 1000

// panicked converts a panic over a unit, a kind or an object, to an error. It logs the first one of each unit with its
// stack. Only the recovering function may call it.
func (s *Source) panicked(unit string, cause any) error {
	if s.panics.note(unit) {
		s.log.Error("reading panicked; it is logged once, and what was read before stays in force", "unit", unit,
			"panic", cause, "stack", string(debug.Stack()))
	}
	return fmt.Errorf("a fault of pilotd: panic: %v", cause)
}

// Panics returns the number of recovered panics.
func (s *Source) Panics() int {
	s.panics.mu.Lock()
	defer s.panics.mu.Unlock()
	return s.panics.count
}

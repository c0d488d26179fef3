package kube

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// panics counts the faults of what reads objects, and remembers which were logged. The zero value is ready for use.
type panics struct {
	mu sync.Mutex
	// Guarded by mu.
	count  int
	logged map[string]bool
}

// note counts a fault of a unit, and reports whether it is the first.
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

// maxLogged bounds the units whose faults are logged.
const maxLogged = 1000

// panicked makes an error of a panic that was caught while a unit was read: a kind, or an object. The first of each
// unit is logged with its stack. It is to be called by the function that recovered.
func (s *Source) panicked(unit string, cause any) error {
	if s.panics.note(unit) {
		s.log.Error("reading panicked; it is logged once, and what was read before stays in force", "unit", unit,
			"panic", cause, "stack", string(debug.Stack()))
	}
	return fmt.Errorf("a fault of pilotd: panic: %v", cause)
}

// Panics returns how many faults were contained.
func (s *Source) Panics() int {
	s.panics.mu.Lock()
	defer s.panics.mu.Unlock()
	return s.panics.count
}

package quota

import "sync"

// Share limits how much each caller has at the same time, and how much all callers have together.
type Share struct {
	// Immutable after NewShare.
	all, each int // 0 means no limit

	mu sync.Mutex
	// Guarded by mu.
	taken int
	by    map[Caller]int
}

// NewShare returns a Share with these limits for all callers together and for each one; 0 means no limit.
func NewShare(all, each int) *Share { return &Share{all: all, each: each, by: map[Caller]int{}} }

// Enter reports whether a caller may have one more, and counts it. After true, the caller must call Leave.
func (s *Share) Enter(c Caller) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all > 0 && s.taken >= s.all || s.each > 0 && s.by[c] >= s.each {
		return false
	}
	s.taken++
	s.by[c]++
	return true
}

// Leave undoes a successful Enter.
func (s *Share) Leave(c Caller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	if s.by[c]--; s.by[c] == 0 {
		delete(s.by, c)
	}
}

// Taken returns how much all callers have together, and how many callers have something.
func (s *Share) Taken() (taken, callers int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken, len(s.by)
}

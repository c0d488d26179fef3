package identity

import (
	"sync"
	"sync/atomic"
)

// Proof is what a client has shown, where that can be taken back before it expires: a token of an API server. Somebody
// asks for it again while something depends on it. A nil Proof cannot be taken back. Safe for concurrent use.
type Proof struct {
	over atomic.Bool
	once sync.Once
	need func(*Proof)
}

// NewProof returns a Proof that calls need when something depends on it for the first time. need must not block.
func NewProof(need func(*Proof)) *Proof { return &Proof{need: need} }

// Need says that something depends on the Proof from now on.
func (p *Proof) Need() {
	if p != nil {
		p.once.Do(func() { p.need(p) })
	}
}

// TakeBack says that the Proof does not hold any more.
func (p *Proof) TakeBack() { p.over.Store(true) }

// Over reports whether the Proof was taken back.
func (p *Proof) Over() bool { return p != nil && p.over.Load() }

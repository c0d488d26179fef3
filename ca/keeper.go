package ca

import (
	"sync"
	"time"
)

// Keeper keeps the authority that is in force: the last one whose material was good. Safe for concurrent use.
type Keeper struct {
	// Immutable after NewKeeper.
	changed func(*Authority)

	mu sync.Mutex
	// Guarded by mu.
	authority *Authority
	problem   error
}

// NewKeeper makes a Keeper without an authority. changed, unless nil, is told of each one that comes into force, one
// after the other; it must not call the Keeper.
func NewKeeper(changed func(*Authority)) *Keeper { return &Keeper{changed: changed} }

// Authority returns the authority in force; nil while there is none.
func (k *Keeper) Authority() *Authority {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.authority
}

// Problem returns why the last material is not in force; nil when it is.
func (k *Keeper) Problem() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.problem
}

// Take puts an authority of this material into force. Bad material changes nothing but Problem.
func (k *Keeper) Take(m Material) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.authority != nil && k.authority.material.equal(m) {
		k.problem = nil
		return nil
	}
	a, err := New(m)
	if k.problem = err; err != nil {
		return err
	}
	k.authority = a
	if k.changed != nil {
		k.changed(a)
	}
	return nil
}

// SelfSigned returns the material of the authority in force if it is self-signed, as those are that are made here. It
// has the key: it is for whoever stores it.
func (k *Keeper) SelfSigned() (Material, bool) {
	a := k.Authority()
	if a == nil || a.cert.CheckSignatureFrom(a.cert) != nil {
		return Material{}, false
	}
	return a.material, true
}

// Fail notes why there is no material to take.
func (k *Keeper) Fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.problem = err
}

// Renew returns the material of the authority in force with a root that is good for longer, if it is time for that. See
// Authority.Renewed.
func (k *Keeper) Renew(r Root, now time.Time) (Material, bool, error) {
	a := k.Authority()
	if a == nil || !a.due(now) {
		return Material{}, false, nil
	}
	m, err := a.Renewed(r, now)
	return m, err == nil, err
}

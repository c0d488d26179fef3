package ca

import (
	"sync"
	"time"
)

// Keeper holds the authority in force: the last one whose material was valid. Safe for concurrent use.
type Keeper struct {
	// Immutable after NewKeeper.
	changed func(*Authority)

	mu sync.Mutex
	// Guarded by mu.
	authority *Authority
	problem   error
}

// NewKeeper makes a Keeper without an authority. changed, unless it is nil, is called with each authority that comes
// into force, one call at a time. It must not call the Keeper.
func NewKeeper(changed func(*Authority)) *Keeper { return &Keeper{changed: changed} }

// Authority returns the authority in force, or nil if there is none yet.
func (k *Keeper) Authority() *Authority {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.authority
}

// Problem returns why the last material was refused, or nil if it is in force.
func (k *Keeper) Problem() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.problem
}

// Take makes an authority from the material and puts it into force. Invalid material changes only Problem.
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

// SelfSigned returns the material of the authority in force if that is self-signed, as those that this package makes
// are. The material includes the private key: it is for the caller that stores it.
func (k *Keeper) SelfSigned() (Material, bool) {
	a := k.Authority()
	if a == nil || a.cert.CheckSignatureFrom(a.cert) != nil {
		return Material{}, false
	}
	return a.material, true
}

// Fail records why there is no material.
func (k *Keeper) Fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.problem = err
}

// Renew returns the material of the authority in force with a root that expires later, if it is time to renew it. See
// Authority.Renewed.
func (k *Keeper) Renew(r Root, now time.Time) (Material, bool, error) {
	a := k.Authority()
	if a == nil || !a.due(now) {
		return Material{}, false, nil
	}
	m, err := a.Renewed(r, now)
	return m, err == nil, err
}

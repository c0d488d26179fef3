// Package identity names clients of the mesh: which service account of which namespace and trust domain one is, and
// until when that is proven.
//
// It is pure. Package authn finds out who a client is; package proxy holds what a client claims against it.
package identity

import (
	"fmt"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// Identity is a service account of the mesh. The zero value is nobody.
type Identity struct {
	TrustDomain, Namespace, ServiceAccount string
}

// New returns an identity of these names. It refuses names that have no place in a SPIFFE ID, so that no name can stand
// for more than one part of it.
func New(trustDomain, namespace, serviceAccount string) (Identity, error) {
	i := Identity{trustDomain, namespace, serviceAccount}
	domain, err := spiffeid.TrustDomainFromString(trustDomain)
	if err != nil {
		return Identity{}, fmt.Errorf("trust domain %q: %w", trustDomain, err)
	}
	if domain.Name() != trustDomain {
		return Identity{}, fmt.Errorf("trust domain %q: want a name alone", trustDomain)
	}
	if _, err := spiffeid.FromSegments(domain, "ns", namespace, "sa", serviceAccount); err != nil {
		return Identity{}, fmt.Errorf("service account %q of namespace %q: %w", serviceAccount, namespace, err)
	}
	return i, nil
}

// Parse reads spiffe://DOMAIN/ns/NAMESPACE/sa/ACCOUNT.
func Parse(uri string) (Identity, error) {
	id, err := spiffeid.FromString(uri)
	if err != nil {
		return Identity{}, fmt.Errorf("SPIFFE ID: %w", err)
	}
	namespace, account, ok := accountOf(id.Path())
	if !ok {
		return Identity{}, fmt.Errorf("SPIFFE ID %q: want spiffe://DOMAIN/ns/NAMESPACE/sa/ACCOUNT", uri)
	}
	return New(id.TrustDomain().Name(), namespace, account)
}

// String returns the identity as a SPIFFE ID; empty for nobody.
func (i Identity) String() string {
	if i == (Identity{}) {
		return ""
	}
	return "spiffe://" + i.TrustDomain + "/ns/" + i.Namespace + "/sa/" + i.ServiceAccount
}

// Peer is a client that has proven who it is. The zero value is one that has proven nothing.
type Peer struct {
	Identity Identity
	// Until is when the proof ends: the certificate's or the token's expiry.
	Until time.Time
	// Pod is the pod that its token is bound to; the zero value where that is not known.
	Pod Pod
	// Proof is what it has shown, if that can be taken back before Until.
	Proof *Proof
}

// Pod is a pod of the namespace of an Identity. The UID tells it from others that have had its name.
type Pod struct{ Name, UID string }

// Proven reports whether the client has proven who it is.
func (p Peer) Proven() bool { return p.Identity != Identity{} }

// Holds reports whether the proof holds at a time: it has neither ended nor been taken back.
func (p Peer) Holds(now time.Time) bool { return now.Before(p.Until) && !p.Proof.Over() }

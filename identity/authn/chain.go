package authn

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"

	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/identity/quota"
)

// Bounds of the certificates that a client shows. Those of workloads are a handful of some 1,000 bytes.
const (
	maxChain      = 10
	maxChainBytes = 64 << 10
)

// refusedChain is a chain that was refused for lack of a way to these roots.
type refusedChain struct {
	roots *x509.CertPool
	err   *Refusal
}

// signed returns nil if a way leads from the client's certificate to a root, for a client, at this time.
//
// Looking for the way can be made to cost a hundred signatures, which a client of whom nothing is known may ask for
// with each stream. So certificates are checked in turns, and those that were refused are remembered for a while.
func (a *Authenticator) signed(ctx context.Context, c Credentials, roots *x509.CertPool) error {
	key, ok := chainKey(c.Certificates)
	if !ok {
		return &Refusal{ReasonMalformed, "too many certificates are shown, or too large ones"}
	}
	if known, ok := a.reviews.known.Get(key); ok && known.(refusedChain).roots == roots {
		return known.(refusedChain).err
	}
	if a.checks.Wait(ctx, quota.Of(identity.Identity{}, c.From)) != nil {
		return &Refusal{ReasonUnavailable, "the client certificate could not be checked in time"}
	}
	defer a.checks.Done()
	leaf, between := c.Certificates[0], x509.NewCertPool()
	for _, one := range c.Certificates[1:] {
		between.AddCert(one)
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: a.options.Now(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	var invalid x509.CertificateInvalidError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return &Refusal{ReasonExpired, "the client certificate is not valid at this time"}
	}
	r := &Refusal{ReasonCertificate, "the client certificate is not signed by a root of the mesh for a client"}
	a.reviews.known.Add(key, refusedChain{roots, r}, badFor)
	return r
}

// chainHash is the key of a chain among what is remembered; those of tokens are of another type.
type chainHash [sha256.Size]byte

// chainKey returns the key of a client's certificates; false if there are too many.
func chainKey(chain []*x509.Certificate) (key chainHash, ok bool) {
	if len(chain) > maxChain {
		return key, false
	}
	all, h := 0, sha256.New()
	for _, c := range chain {
		if all += len(c.Raw); all > maxChainBytes {
			return key, false
		}
		_, _ = h.Write(c.Raw) // each begins with its own length
	}
	h.Sum(key[:0])
	return key, true
}

package ads

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/xdstype"
)

// Section is a sorted, persistent list of resources by name: a classes.Section.
type Section = chunked.Map[*encodecache.Entry]

// Resources are the resources of one type, by name, that a client has or should have. Equal pointers mean equal
// resources; different pointers mean nothing. Immutable. nil is what a client has that has nothing.
type Resources struct {
	Section Section
	// Final tells that the client keeps what it has of the type, for as long as it likes, and gets nothing of it any
	// more. What it asks for does not exist.
	Final bool
}

// get returns the resource of that name, or nil.
func (c *Resources) get(name string) *encodecache.Entry {
	if c == nil {
		return nil
	}
	e, _ := c.Section.Get(name)
	return e
}

func (c *Resources) section() Section {
	if c == nil {
		return Section{}
	}
	return c.Section
}

// Desired is what a client should have: the ResourceSet of its class, joined with the endpoints of now.
type Desired interface {
	// Resources returns what the client should have of type t: all that sub asks for, and maybe more. While nothing
	// changes it returns the same pointer. nil tells that it is not known yet: then the client is told nothing, until
	// Renew is called.
	Resources(t xdstype.Type, sub Subscription) *Resources
}

// Subscription is which resources of a type a client wants. Comparable.
type Subscription struct {
	// All is a wildcard subscription.
	All bool
	// Names are those asked for by name.
	Names *Names
}

// None reports whether nothing is subscribed to.
func (s Subscription) None() bool { return !s.All && s.Names == nil }

// Has reports whether the resource of that name is wanted.
func (s Subscription) Has(name string) bool { return s.All || s.Names.Contains(name) }

// digest is a hash of a set of (name, version) that can be brought along when one member changes: the sum of the
// members' hashes.
type digest [2]uint64

func (d digest) plus(o digest) digest {
	lo, carry := bits.Add64(d[0], o[0], 0)
	hi, _ := bits.Add64(d[1], o[1], carry)
	return digest{lo, hi}
}

func (d digest) minus(o digest) digest {
	lo, borrow := bits.Sub64(d[0], o[0], 0)
	hi, _ := bits.Sub64(d[1], o[1], borrow)
	return digest{lo, hi}
}

// sum returns the sum of what digest d says of each Entry of a Section. Each chunk is digested once.
func (d digest) sum() (s chunked.Sum) {
	binary.LittleEndian.PutUint64(s[:8], d[0])
	binary.LittleEndian.PutUint64(s[8:], d[1])
	return s
}

func digestOfSum(s chunked.Sum) digest {
	return digest{binary.LittleEndian.Uint64(s[:8]), binary.LittleEndian.Uint64(s[8:])}
}

// digestOfSection returns the digest of all members of s.
func digestOfSection(s Section) digest {
	member := func(_ string, e *encodecache.Entry) chunked.Sum { return digestOf(e).sum() }
	plus := func(sums []chunked.Sum) chunked.Sum {
		var d digest
		for _, s := range sums {
			d = d.plus(digestOfSum(s))
		}
		return d.sum()
	}
	return digestOfSum(s.Digest(member, plus))
}

// version returns the version_info of a State-of-the-World response that leaves its client with this set.
func (d digest) version() string {
	return encodecache.Sum(d.sum()).String()
}

// digestOf returns the hash of one member; of nil, none.
func digestOf(e *encodecache.Entry) digest {
	if e == nil {
		return digest{}
	}
	var room [128]byte
	sum := e.Sum()
	h := sha256.Sum256(append(append(room[:0], sum[:]...), e.Name()...))
	return digest{binary.LittleEndian.Uint64(h[:]), binary.LittleEndian.Uint64(h[8:])}
}

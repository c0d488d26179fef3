package ingest

import (
	"maps"
	"time"

	clientsec "istio.io/client-go/pkg/apis/security/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// KeySource is the name of the source of the keys that issuers of tokens publish. It is Synced behind all others, for
// these say what it has to read.
const KeySource = "keys"

// KeyPlace is where the keys of an issuer are published. Comparable.
type KeyPlace struct {
	// URI is that of the key set. Where it is empty, the OpenID configuration of Issuer names it.
	URI, Issuer string
}

// Keys are what was found at a KeyPlace.
type Keys struct {
	// Set is the last good key set, as ReadKeySet returns it; empty if there never was one.
	Set string
	// Problem says why there is none that is new; empty if there is.
	Problem string
}

// WantedKeys are the places of keys that objects name.
type WantedKeys struct {
	// Places has how long a fetch may take, 0 where objects say nothing of it.
	Places map[KeyPlace]time.Duration
	// Settled: all other sources are Synced.
	Settled bool
}

// issuerKeys are the keys of issuers, and who uses them. Guarded by the Store's mu.
type issuerKeys struct {
	users groups[KeyPlace, value.ObjectKey]
	found map[KeyPlace]Keys
	// changed holds one token when WantedKeys may answer something else than before. Immutable.
	changed chan struct{}
}

func newIssuerKeys() issuerKeys {
	return issuerKeys{users: groups[KeyPlace, value.ObjectKey]{}, found: map[KeyPlace]Keys{},
		changed: make(chan struct{}, 1)}
}

// WantedKeys returns the places of keys that objects in force name now.
func (s *Store) WantedKeys() WantedKeys {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := WantedKeys{Places: map[KeyPlace]time.Duration{}, Settled: true}
	for source := range s.waiting {
		out.Settled = out.Settled && source == KeySource
	}
	for place, users := range s.joiner.keys.users {
		out.Places[place] = 0
		for key := range users {
			o, _ := s.joiner.rules[key].(*clientsec.RequestAuthentication)
			for p, t := range keyPlaces(o) {
				if p == place {
					out.Places[place] = max(out.Places[place], t)
				}
			}
		}
	}
	return out
}

// WantedKeysChanged yields something when WantedKeys may answer something else than before.
func (s *Store) WantedKeysChanged() <-chan struct{} { return s.joiner.keys.changed }

// PutKeys takes what was found, and forgets the places with neither keys nor a problem. Nothing else changes than the
// objects that name a place with other keys than before.
func (s *Store) PutKeys(found map[KeyPlace]Keys) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &s.joiner.keys
	for place, keys := range found {
		if k.found[place] == keys {
			continue
		}
		if k.found[place] = keys; keys == (Keys{}) {
			delete(k.found, place)
		}
		for user := range k.users[place] {
			s.joiner.marks.objects.add(user)
		}
	}
	s.hand()
}

// wake tells whoever reads keys that WantedKeys may answer something else. It never blocks.
func (k *issuerKeys) wake() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// keyPlaces returns where the keys of an object's rules are that has them not itself, and how long a fetch may take.
func keyPlaces(o *clientsec.RequestAuthentication) map[KeyPlace]time.Duration {
	out := map[KeyPlace]time.Duration{}
	if o == nil {
		return out
	}
	for _, r := range o.Spec.GetJwtRules() {
		if p := keyPlace(r); p != (KeyPlace{}) {
			out[p] = max(out[p], r.GetTimeout().AsDuration())
		}
	}
	return out
}

// putRequestAuthentication keeps the index of who uses which keys.
func (j *joiner) putRequestAuthentication(key value.ObjectKey, object any) {
	old, _ := j.rules[key].(*clientsec.RequestAuthentication)
	next, _ := object.(*clientsec.RequestAuthentication)
	before, after := keyPlaces(old), keyPlaces(next)
	for p := range before {
		j.keys.users.remove(p, key)
	}
	for p := range after {
		j.keys.users.add(p, key)
	}
	if j.putRule(key, object); !maps.Equal(before, after) {
		j.keys.wake()
	}
}

package ingest

import (
	"maps"
	"slices"
	"time"

	clientsec "istio.io/client-go/pkg/apis/security/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// KeySource is the name of the source of the public keys of token issuers. It is Synced after all others, because their
// objects say which keys it has to fetch.
const KeySource = "keys"

// KeyPlace is the location at which an issuer publishes its keys. Comparable.
type KeyPlace struct {
	// URI is the address of the key set. If it is empty, the OpenID configuration of Issuer names the address.
	URI, Issuer string
}

// Keys is the result of reading a KeyPlace.
type Keys struct {
	// Set is the last good key set, as ReadKeySet returns it; empty if there never was one.
	Set string
	// Problem says why the last attempt to read the keys failed; empty if it did not.
	Problem string
}

// WantedKeys are the key places that objects in force name.
type WantedKeys struct {
	// Places are the places, and who wants the keys there.
	Places map[KeyPlace]KeyUse
	// Settled says that all other sources are Synced.
	Settled bool
}

// KeyUse tells who wants the keys of a place.
type KeyUse struct {
	// Time is the time that a fetch may take, 0 if no object sets one.
	Time time.Duration
	// Namespaces are those whose objects name the place, in no order.
	Namespaces []string
}

// issuerKeys holds the keys of issuers and the objects that use them. Guarded by the Store's mu.
type issuerKeys struct {
	users groups[KeyPlace, value.ObjectKey]
	found map[KeyPlace]Keys
	// changed holds one token if the answer of WantedKeys may have changed since the token was last taken. Immutable.
	changed chan struct{}
}

func newIssuerKeys() issuerKeys {
	return issuerKeys{users: groups[KeyPlace, value.ObjectKey]{}, found: map[KeyPlace]Keys{},
		changed: make(chan struct{}, 1)}
}

// WantedKeys returns the key places that objects in force name now.
func (s *Store) WantedKeys() WantedKeys {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := WantedKeys{Places: map[KeyPlace]KeyUse{}, Settled: true}
	for source := range s.waiting {
		out.Settled = out.Settled && source == KeySource
	}
	for place, users := range s.joiner.keys.users {
		use := KeyUse{}
		for key := range users {
			o, _ := s.joiner.rules[key].(*clientsec.RequestAuthentication)
			use.Time = max(use.Time, keyPlaces(o)[place])
			if !slices.Contains(use.Namespaces, key.Namespace) {
				use.Namespaces = append(use.Namespaces, key.Namespace)
			}
		}
		out.Places[place] = use
	}
	return out
}

// WantedKeysChanged returns a channel that yields a value when the answer of WantedKeys may have changed.
func (s *Store) WantedKeysChanged() <-chan struct{} { return s.joiner.keys.changed }

// PutKeys stores what was found, and forgets places that have neither keys nor a problem. It recomputes only the
// objects that name a place whose keys changed.
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

// wake puts a token into changed. It never blocks.
func (k *issuerKeys) wake() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// keyPlaces returns the key places of those rules of an object that do not contain their keys, with the time that a
// fetch may take.
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

// putRequestAuthentication updates the index of the key places that objects use.
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

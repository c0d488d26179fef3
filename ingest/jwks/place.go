package jwks

import (
	"iter"
	"time"

	"github.com/pilotd/pilotd/ingest"
)

// place is the state of one place. An issuer's has the URI of its keys, which are fetched as a place of their own:
//
//	place {Issuer: x} ── uri ──► place {URI: x/keys} ◄── objects that name the URI themselves
type place struct {
	use      ingest.KeyUse
	wanted   bool // objects name it
	due      time.Time
	busy     bool
	tried    bool
	failures int
	// keys are those that were found last. Of an issuer they are the last ones of its URI.
	keys ingest.Keys

	uri     string                       // of an issuer: where its keys are; empty while that is not known
	issuers map[ingest.KeyPlace]struct{} // of a URI: those whose keys are here
}

// place returns the state of a place, which it makes if there is none.
func (f *Fetcher) place(key ingest.KeyPlace) *place {
	p := f.places[key]
	if p == nil {
		p = &place{issuers: map[ingest.KeyPlace]struct{}{}}
		f.places[key] = p
	}
	return p
}

// leave forgets a place that no object names any more, unless it has the keys of an issuer.
func (f *Fetcher) leave(key ingest.KeyPlace) {
	p := f.places[key]
	delete(f.first, key)
	if len(p.issuers) > 0 {
		return
	}
	f.part(key)
	delete(f.places, key)
}

// locate notes where the keys of an issuer are.
func (f *Fetcher) locate(issuer ingest.KeyPlace, uri string) {
	if f.places[issuer].uri == uri {
		return
	}
	f.part(issuer)
	f.places[issuer].uri = uri
	f.place(ingest.KeyPlace{URI: uri}).issuers[issuer] = struct{}{}
}

// part forgets where the keys of an issuer are, and the place itself if nobody else wants it.
func (f *Fetcher) part(issuer ingest.KeyPlace) {
	key := ingest.KeyPlace{URI: f.places[issuer].uri}
	at := f.places[key]
	if f.places[issuer].uri == "" || at == nil {
		return
	}
	if delete(at.issuers, issuer); len(at.issuers) == 0 && !at.wanted {
		delete(f.places, key)
	}
}

// keysOf returns what is known of the keys of a place that objects name; false while nothing is. Last good keys stay
// while newer ones, or the place of an issuer's, cannot be fetched.
func (f *Fetcher) keysOf(key ingest.KeyPlace) (ingest.Keys, bool) {
	p := f.places[key]
	at := f.places[ingest.KeyPlace{URI: p.uri}]
	if p.uri != "" && at != nil && at.tried {
		if at.keys.Set != "" {
			p.keys.Set = at.keys.Set
		}
		if p.keys.Problem == "" {
			return ingest.Keys{Set: p.keys.Set, Problem: at.keys.Problem}, true
		}
	}
	return p.keys, p.keys != ingest.Keys{}
}

// uses yields who wants a place: objects that name it, and those that name issuers whose keys are there.
func (f *Fetcher) uses(p *place) iter.Seq[ingest.KeyUse] {
	return func(yield func(ingest.KeyUse) bool) {
		if p.wanted && !yield(p.use) {
			return
		}
		for issuer := range p.issuers {
			if !yield(f.places[issuer].use) {
				return
			}
		}
	}
}

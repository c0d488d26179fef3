package ads

import (
	"sync"
	"weak"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/xdstype"
)

// Culprit is something that a client refused: a resource, or one part of it, with a certain content.
type Culprit struct {
	Type xdstype.Type
	Name string
	// Part is the name of the part: a virtual host or a filter chain. It is empty for the whole resource, and for what all
	// its parts need.
	Part string
	// Sum is the content that is refused.
	Sum encodecache.Sum
}

// Offence is a Culprit, and what it was made from.
type Offence struct {
	Culprit
	// Origins are the Keys of its Fragments, as far as they have any.
	Origins []any
}

const (
	// maxVerdicts bounds the verdicts of a process.
	maxVerdicts = 8192
	// maxOwnVerdicts bounds how many of them are there because of one stream.
	maxOwnVerdicts = 128
	// maxSuspects bounds the suspects of all Sessions, maxOwnSuspects those of one type of one stream. Each costs some
	// 400 bytes.
	maxSuspects    = 1 << 17
	maxOwnSuspects = 1 << 14
)

// Verdicts are what the clients of a process have refused. A Session looks here only after its own client has refused a
// response: what others have found then saves it the search. So what one client says never changes what another is
// sent.
//
// A verdict stays while a Session holds the content back. After that it leaves when the content has changed, or when
// another verdict needs its room. Verdicts are safe for concurrent use; no method blocks for longer than a few map
// accesses.
type Verdicts struct {
	mu sync.Mutex
	// Guarded by mu.
	byResource map[resource]map[Culprit]*verdict
	n          int
	idle       int // of them, those that no Session holds back
	suspects   int // that all Sessions have
}

// resource is a resource by type and name.
type resource struct {
	typ  xdstype.Type
	name string
}

// verdict is what is known of one Culprit. Guarded by the mutex of the Verdicts.
type verdict struct {
	holders  int // Sessions that hold it back
	fragment weak.Pointer[encodecache.Fragment]
	entry    weak.Pointer[encodecache.Entry]
}

// alive reports whether the content is still in use.
func (v *verdict) alive() bool { return v.fragment.Value() != nil || v.entry.Value() != nil }

// NewVerdicts makes an empty table. A process needs one.
func NewVerdicts() *Verdicts { return &Verdicts{byResource: map[resource]map[Culprit]*verdict{}} }

// Len returns the number of verdicts.
func (v *Verdicts) Len() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.n
}

// reach notes that a Session holds a Culprit back from now on. may tells that the Session may add a new verdict. mine
// reports that no other Session knew the Culprit; ok is false when there is no room for it.
func (v *Verdicts) reach(c Culprit, e *encodecache.Entry, f *encodecache.Fragment, may bool) (mine, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	of := resource{c.Type, c.Name}
	known := v.byResource[of][c]
	if known == nil {
		if !may || v.n >= maxVerdicts && !v.sweep() {
			return false, false
		}
		if v.byResource[of] == nil {
			v.byResource[of] = map[Culprit]*verdict{}
		}
		known, mine = &verdict{}, true
		v.byResource[of][c] = known
		v.n++
		v.idle++
	}
	if known.holders++; known.holders == 1 {
		v.idle--
	}
	switch {
	case f != nil:
		known.fragment = weak.Make(f)
	case e != nil:
		known.entry = weak.Make(e)
	}
	return mine, true
}

// release notes that a Session no longer holds a Culprit back. settled tells that the content has changed or gone. It
// reports whether no Session holds the Culprit back now.
func (v *Verdicts) release(c Culprit, settled bool) (last bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	of := resource{c.Type, c.Name}
	known := v.byResource[of][c]
	if known == nil || known.holders == 0 {
		return false
	}
	if known.holders--; known.holders > 0 {
		return false
	}
	v.idle++
	if settled || !known.alive() {
		v.forget(of, c)
	}
	return true
}

// forget removes a verdict that no Session holds back. The caller holds mu.
func (v *Verdicts) forget(of resource, c Culprit) {
	delete(v.byResource[of], c)
	if len(v.byResource[of]) == 0 {
		delete(v.byResource, of)
	}
	v.n--
	v.idle--
}

// known returns what has been refused of a resource, in any version of it.
func (v *Verdicts) known(typ xdstype.Type, name string) (out []Culprit) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for c := range v.byResource[resource{typ, name}] {
		out = append(out, c)
	}
	return out
}

// sweep makes room: it forgets a verdict that no Session holds back. It reports false if there is none. The caller
// holds mu.
func (v *Verdicts) sweep() bool {
	if v.idle == 0 {
		return false
	}
	for of, all := range v.byResource {
		for c, known := range all {
			if known.holders == 0 {
				v.forget(of, c)
				return true
			}
		}
	}
	return false
}

// room reports whether n more suspects may be remembered.
func (v *Verdicts) room(n int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.suspects+n <= maxSuspects
}

// charge counts n more suspects.
func (v *Verdicts) charge(n int) {
	if n == 0 {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.suspects += n
}

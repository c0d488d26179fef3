package ads

import (
	"errors"
	"time"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/xdstype"
)

// Errors that end a stream whose subscription is over a limit.
var (
	ErrTooManyNames    = errors.New("the subscription has more names than the limit allows")
	ErrTooManyBytes    = errors.New("the subscriptions have too many bytes of names")
	ErrAllTooManyBytes = errors.New("the subscriptions of all streams have too many bytes of names")
)

// The bounds of the waits that order asks for.
const (
	// CreditWait is how long an un-ACKed CDS response holds back the next one, and RDS that names its new clusters.
	CreditWait = time.Second
	// RemovalWait is how long removals wait for the ACKs of what was sent before them.
	RemovalWait = 2 * time.Second
)

// Options are the facts about a stream that its Session depends on.
type Options struct {
	Delta bool
	// Sidecar tells that the client is a sidecar: see xdstype.Row for what it gets otherwise than others.
	Sidecar bool
	// MaxNames limits the names of a type's subscription; 0 is no limit.
	MaxNames int
	// MaxNameBytes limits the memory of the subscriptions of all types; 0 is no limit.
	MaxNameBytes int
	// Doubt are the types of which this client's versions are not to be believed: it refused something on an earlier
	// stream.
	Doubt xdstype.Set
}

// Session is the protocol state of one stream. Its methods are called by one goroutine at a time; each returns what is
// to be done, in order, in a slice that is valid until the next call with the same Differ.
type Session struct {
	// Immutable after New.
	opts Options
	rows *xdstype.Table

	// Owned by the worker goroutine.
	desired  Desired   // nil until the first ResourceSet
	types    []state   // by type
	sends    uint64    // responses so far
	read     uint64    // up to which of them the client has ACKed or refused one
	answered bool      // the client has ACKed or refused one of them
	now      time.Time // of the last call
	removeBy time.Time // when what is kept goes in any case; zero while nothing is kept
	proveBy  time.Time // when the stream's first response goes in any case; zero while nothing is owed
	own      int       // verdicts that are there because of this Session
}

// state is a Session's knowledge of one type.
type state struct {
	// What the client asked for.
	watched bool // it has sent a request of this type
	first   bool // its first request is not answered yet
	named   bool // it has named resources of this type, State-of-the-World: an empty list is no wildcard any more
	full    bool // EDS: it is answered in full, whatever versions it reports
	sub     Subscription
	version string    // its version_info when it came
	initial *Versions // its initial_resource_versions: of what it has not accepted here yet

	// What it should have and has.
	at    Desired    // what have was taken from
	have  *Resources // what it has once it has accepted all that was sent
	sum   digest     // of have over sub; State-of-the-World only
	kept  bool       // have has something that is no longer desired
	force *Names     // to be sent whatever it has
	doubt bool       // its versions are not to be believed

	// What is under way.
	flights []flight // un-ACKed responses, oldest first
	waiting bool     // the newest of them has the credit
	blocked bool     // something is to be sent and may not be yet

	// What it accepted and refused.
	accepted had      // as of its last ACK
	refusal  *refusal // nil until the first
	log      record
}

// flight is a response that is neither ACKed nor refused.
type flight struct {
	batch *Batch
	to    had
	seq   uint64
	since time.Time
}

// had is what a client has of a subscription: of names beyond it, nothing.
type had struct {
	resources *Resources
	sub       Subscription
}

// get returns the client's resource of that name, or nil.
func (h had) get(name string) *encodecache.Entry {
	if !h.sub.Has(name) {
		return nil
	}
	return h.resources.get(name)
}

// maxFlights bounds the un-ACKed responses of a type that are remembered. More than one there are of CDS only.
const maxFlights = 8

// New returns the Session of a stream that begins. It serves the types of the Differ, which every later call is given
// too.
func New(b *Differ, o Options) *Session {
	s := &Session{opts: o, rows: b.rows, types: make([]state, b.rows.Len())}
	for t := range s.types {
		s.types[t].doubt = o.Doubt.Has(xdstype.Type(t))
	}
	return s
}

// row returns the row of a type.
func (s *Session) row(typ xdstype.Type) *xdstype.Row { return s.rows.Row(typ) }

// warms reports whether clients ACK a type only when its resources are warm, which may be never.
func (s *Session) warms(typ xdstype.Type) bool { return s.rows.WarmedBy(typ) != xdstype.None }

// EffectKind says what an Effect asks for.
type EffectKind uint8

// The kinds of Effects.
const (
	// Send asks to send Batch.
	Send EffectKind = iota
	// Refused reports that the client refused the Names of a response, with Message: Parts are what of each, Offences
	// what is shared with other Sessions. There are none while it is not known what was bad.
	Refused
	// Healed reports Offences that no Session holds back any more.
	Healed
	// Expired reports a request about a response that is not the last one.
	Expired
	// Unserved reports a request for a type that is not served.
	Unserved
	// Wanted reports the first request for a Type that is made on demand.
	Wanted
	// Doubtful reports that the client's versions of Type are not to be believed, also on a new stream.
	Doubtful
	// Certain reports that they are again.
	Certain
	// Exceeded asks to end the stream: Err tells why.
	Exceeded
)

// Effect is one thing that a Session asks for or reports.
type Effect struct {
	Kind    EffectKind
	Type    xdstype.Type
	TypeURL string
	Batch   *Batch
	Names   []string
	Parts   []string
	Message string
	Err     error

	Offences []Offence
}

// turn is one call of a Session: what it may ask, and what it asks for.
type turn struct {
	*Session
	differ *Differ
	out    []Effect
}

func (s *Session) turn(now time.Time, b *Differ) *turn {
	s.now = now
	return &turn{Session: s, differ: b, out: b.effects[:0]}
}

func (t *turn) effects() []Effect {
	t.differ.effects = t.out
	return t.out
}

func (t *turn) emit(e Effect) { t.out = append(t.out, e) }

// Receive is told of a request.
func (s *Session) Receive(now time.Time, b *Differ, r *Request) []Effect {
	t := s.turn(now, b)
	typ, served := s.rows.Of(r.TypeURL)
	switch {
	case !served:
		t.unserved(r)
	case s.opts.Delta:
		t.delta(typ, r)
	default:
		t.sotw(typ, r)
	}
	return t.effects()
}

// SetDesired tells the Session what its client should have from now on.
func (s *Session) SetDesired(now time.Time, b *Differ, desired Desired) []Effect {
	t := s.turn(now, b)
	s.desired = desired
	t.pump()
	return t.effects()
}

// Refresh tells the Session that endpoints of what is desired have changed.
func (s *Session) Refresh(now time.Time, b *Differ) []Effect {
	t := s.turn(now, b)
	if typ := s.rows.FromEndpoints(); s.desired != nil && typ != xdstype.None {
		t.step(typ, s.upstream(typ))
		t.removals()
	}
	return t.effects()
}

// Tick is told the time. It is to be called at Deadline.
func (s *Session) Tick(now time.Time, b *Differ) []Effect {
	t := s.turn(now, b)
	for typ := range s.types {
		if st := &s.types[typ]; st.waiting && s.warms(xdstype.Type(typ)) &&
			!now.Before(st.newest().since.Add(CreditWait)) {
			st.waiting = false
		}
	}
	t.pump()
	t.overdue()
	return t.effects()
}

// Stalled is told that the newest responses have not left the process: the time until the next CDS response may go
// counts from now.
func (s *Session) Stalled(now time.Time) {
	for typ := range s.types {
		if st := &s.types[typ]; st.waiting && s.warms(xdstype.Type(typ)) {
			st.newest().since = now
		}
	}
}

// Deadline returns when Tick is to be called next; zero for never.
func (s *Session) Deadline() time.Time {
	var next time.Time
	consider := func(at time.Time) {
		if at.After(s.now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	var credit time.Time // when a type that becomes warm gets its credit back by time; it may be past
	for typ := range s.types {
		st := &s.types[typ]
		if named := s.row(xdstype.Type(typ)).Mentions; st.blocked && named != xdstype.None {
			for _, f := range s.types[named].flights {
				consider(f.since.Add(CreditWait))
			}
		}
		if !st.waiting || !st.blocked {
			continue
		}
		at := st.newest().since.Add(CreditWait)
		switch {
		case !s.warms(xdstype.Type(typ)):
			consider(at)
		case credit.IsZero() || at.Before(credit):
			credit = at
		}
	}
	consider(s.removeBy)
	consider(s.proveBy)
	if !credit.IsZero() && (next.IsZero() || credit.Before(next)) {
		return credit
	}
	return next
}

// End is told that the stream has ended. It returns what no Session holds back any more.
func (s *Session) End(b *Differ) []Effect {
	t := s.turn(s.now, b)
	for i := range s.types {
		typ := xdstype.Type(i)
		r := s.types[typ].refusal
		if r == nil {
			continue
		}
		var healed []Offence
		for _, units := range r.units {
			for _, u := range units {
				healed = append(healed, t.acquit(typ, u, false)...)
			}
		}
		b.verdicts.charge(-r.paid)
		s.types[typ].refusal = nil
		if len(healed) > 0 {
			t.emit(Effect{Kind: Healed, Type: typ, TypeURL: s.row(typ).URL, Offences: healed})
		}
	}
	return t.effects()
}

func (st *state) newest() *flight { return &st.flights[len(st.flights)-1] }

// unserved answers a request for a type that nobody serves: with nothing, but that Delta names do not exist. There is
// no error: an agent passes on types that only others know.
func (t *turn) unserved(r *Request) {
	t.emit(Effect{Kind: Unserved, TypeURL: r.TypeURL})
	if !r.Delta {
		return
	}
	out := &Batch{TypeURL: r.TypeURL, Delta: true}
	for name := range r.Subscribe.All() {
		if name != wildcard {
			out.Removed = append(out.Removed, name)
		}
	}
	if len(out.Removed) > 0 {
		t.sends++
		t.emit(Effect{Kind: Send, TypeURL: r.TypeURL, Batch: t.differ.finish(out, digest{})})
	}
}

// Unread reports whether a response has been sent that may not have reached the client: none that was sent after it has
// been answered.
func (s *Session) Unread() bool {
	for t := range s.types {
		if st := &s.types[t]; len(st.flights) > 0 && st.newest().seq > s.read {
			return true
		}
	}
	return false
}

// Pending reports whether something waits to be sent: for an ACK, or for the time.
func (s *Session) Pending() bool {
	for t := range s.types {
		if st := &s.types[t]; st.blocked || st.kept {
			return true
		}
	}
	return false
}

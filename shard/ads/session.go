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

// Responses wait for each other to keep the order of protocol.md. These are the longest waits.
const (
	// CreditWait is how long a CDS response that is not ACKed holds back the next one, and routes that name its new
	// clusters.
	CreditWait = time.Second
	// RemovalWait is how long removals wait for the ACKs of what was sent before.
	RemovalWait = 2 * time.Second
)

// Options are the facts about a stream that its Session depends on.
type Options struct {
	Delta bool
	// Sidecar tells that the client is a sidecar. xdstype.Row says what is different for sidecars.
	Sidecar bool
	// MaxNames limits the names of a type's subscription; 0 is no limit.
	MaxNames int
	// MaxNameBytes limits the memory of the subscriptions of all types; 0 is no limit.
	MaxNameBytes int
	// Doubt are the types of which the Session does not believe the client's versions, because it refused something on an
	// earlier stream.
	Doubt xdstype.Set
}

// Session is the protocol state of one stream. One goroutine at a time may call its methods. Each returns what the
// caller must do, in order, in a slice that is valid until the next call with the same Differ.
type Session struct {
	// Immutable after New.
	opts Options
	rows *xdstype.Table

	// Owned by the worker goroutine.
	desired  Desired   // nil until the first ResourceSet
	types    []state   // by type
	sends    uint64    // responses so far
	read     uint64    // the last of them that the client has ACKed or refused
	answered bool      // the client has ACKed or refused one of them
	now      time.Time // of the last call
	removeBy time.Time // when removals are sent at the latest; zero while none are put off
	proveBy  time.Time // when the stream's first response is sent at the latest; zero while none is owed
	own      int       // how many verdicts there are because of this Session
}

// state is a Session's knowledge of one type.
type state struct {
	// What the client asked for.
	watched bool // it has sent a request of this type
	first   bool // its first request is not answered yet
	named   bool // it has named resources of this type (State-of-the-World): an empty list is no wildcard any more
	full    bool // EDS: it gets a full answer, whatever versions it reports
	sub     Subscription
	version string    // its version_info when it came
	initial *Versions // its initial_resource_versions, of what it has not been sent on this stream

	// What it should have and has.
	at    Desired    // what have was taken from
	have  *Resources // what it has once it has accepted all that was sent
	sum   digest     // of have over sub; State-of-the-World only
	kept  bool       // have has something that is no longer desired
	force *Names     // to be sent whatever it has
	doubt bool       // the Session does not believe its versions

	// What is under way.
	flights []flight // un-ACKed responses, oldest first
	waiting bool     // the newest of them has the credit
	blocked bool     // there is something to send that must wait

	// What it accepted and refused.
	accepted had      // as of its last ACK
	refusal  *refusal // nil until the first
	log      record
}

// flight is a response that the client has neither ACKed nor refused yet.
type flight struct {
	batch *Batch
	to    had
	seq   uint64
	since time.Time
}

// had is what a client has: of resources, those that sub names.
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

// maxFlights bounds the unanswered responses that a Session remembers of a type. Only CDS has more than one.
const maxFlights = 8

// New returns the Session of a new stream. It serves the types of the Differ; the caller passes the same Differ to
// every later call.
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
	// Refused reports that the client refused a response: Message is its error, Names are the resources that are bad,
	// Parts what is bad of each, and Offences what other Sessions learn. They are empty while it is not known what is bad.
	Refused
	// Healed reports Offences that no Session holds back any more.
	Healed
	// Expired reports a request with the nonce of a response that is not the last one.
	Expired
	// Unserved reports a request for a type that is not served.
	Unserved
	// Wanted reports the first request for a Type that is planned on demand.
	Wanted
	// Doubtful reports that nobody should believe the client's versions of Type, not even on its next stream.
	Doubtful
	// Certain takes Doubtful back.
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

// turn is one call of a Session: what it may use, and the Effects so far.
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

// Receive takes a request of the client.
func (s *Session) Receive(now time.Time, b *Differ, r *Request) []Effect {
	t := s.turn(now, b)
	typ, served := s.rows.Of(r.TypeURL)
	switch {
	case !served:
		t.unserved(r)
	case s.opts.Delta:
		intake{t, typ}.delta(r)
	default:
		intake{t, typ}.sotw(r)
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
	return s.Renew(now, b, s.rows.FromEndpoints())
}

// Renew tells the Session that what is desired has other resources of a type than before.
func (s *Session) Renew(now time.Time, b *Differ, typ xdstype.Type) []Effect {
	t := s.turn(now, b)
	if s.desired != nil && typ != xdstype.None {
		t.step(typ, s.upstream(typ))
		t.removals()
	}
	return t.effects()
}

// Tick tells the Session the time. The caller calls it at Deadline.
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

// Stalled tells the Session that its newest responses have not left the process yet: CreditWait begins anew.
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
	var credit time.Time // when a type that warms gets its credit back by time; it may be past
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

// End tells the Session that its stream has ended. It returns what no Session holds back any more. Nothing may be
// called after it.
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
				healed = append(healed, t.about(typ).acquit(u, false)...)
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

// unserved answers a request for a type that is not served. There is no error, for agents pass on requests for types
// that only other servers know: State-of-the-World gets no answer, and Delta gets the answer that the names do not
// exist.
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

// Unread reports whether a response may not have reached the client: neither it nor one that was sent after it has been
// answered.
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

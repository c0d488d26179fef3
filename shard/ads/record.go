package ads

import (
	"iter"
	"strings"
	"time"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/xdstype"
)

// record is what is told about one type of a stream to people. Every stream has one of each type: it is small, and what
// most do not need it points to.
type record struct {
	sentLast, ackedLast stamp
	responses           int
	refusals            *refusals // nil until the first
}

// refusals are what is told about what was refused.
type refusals struct {
	last    stamp // none when nothing is held back any more
	message string
	count   int
}

// label is what a response is known by, shared by all that were sent it.
type label struct{ nonce, version string }

// stamp is a response and when something was said of it, in nanoseconds of Unix time by the clock of the caller,
// which must not jump. Its label is nil for none.
type stamp struct {
	label *label
	at    int64
}

// Mark is one response: its nonce, the version that State-of-the-World gave it, and when.
type Mark struct {
	Nonce, Version string
	Time           time.Time
}

func (s stamp) mark() Mark {
	if s.label == nil {
		return Mark{}
	}
	return Mark{s.label.nonce, s.label.version, time.Unix(0, s.at)}
}

// maxRecorded is how much of an error is kept.
const maxRecorded = 4 << 10

// nonce is that of the newest response; empty before the first.
func (r *record) nonce() string {
	if r.sentLast.label == nil {
		return ""
	}
	return r.sentLast.label.nonce
}

func (r *record) sent(b *Batch, now time.Time) {
	r.sentLast = stamp{b.label, now.UnixNano()}
	r.responses++
}

// acked notes an ACK; whole is that nothing of the type is held back any more.
func (r *record) acked(b *Batch, now time.Time, whole bool) {
	r.ackedLast = stamp{b.label, now.UnixNano()}
	if whole && r.refusals != nil {
		r.refusals.last, r.refusals.message = stamp{}, ""
	}
}

func (r *record) refused(b *Batch, now time.Time, message string) {
	if r.refusals == nil {
		r.refusals = &refusals{}
	}
	r.refusals.last = stamp{b.label, now.UnixNano()}
	r.refusals.message = strings.Clone(message[:min(len(message), maxRecorded)]) // a part of it would keep all of it
	r.refusals.count++
}

// Status is what is to be told about one type of a Session.
type Status struct {
	// Watched is whether the client asked for the type.
	Watched bool
	// Wildcard and Names are its subscription.
	Wildcard bool
	Names    int
	// Sent, Acked and Refused are the last responses of each kind; Refused is cleared by an
	// ACK when nothing is held back any more.
	Sent, Acked, Refused Mark
	// Error is why Refused was refused.
	Error string
	// Held are resources that the client refused and is not sent again until they change.
	Held []string
	// Responses and Refusals count.
	Responses, Refusals int
	// Waiting is that a response is not answered yet, Pending that something waits for that.
	Waiting, Pending bool
}

// Status tells about one type.
func (s *Session) Status(t xdstype.Type) Status {
	st := &s.types[t]
	out := Status{
		Watched: st.watched, Wildcard: st.sub.All, Names: st.sub.Names.Len(),
		Sent: st.log.sentLast.mark(), Acked: st.log.ackedLast.mark(), Responses: st.log.responses,
		Waiting: len(st.flights) > 0, Pending: st.blocked,
	}
	if r := st.log.refusals; r != nil {
		out.Refused, out.Error, out.Refusals = r.last.mark(), r.message, r.count
	}
	out.Held = st.refusal.refusedNames()
	return out
}

// Subscription returns what the client asks for of a type.
func (s *Session) Subscription(t xdstype.Type) Subscription { return s.types[t].sub }

// Has yields what the client was sent of a type and has not been told to drop, by name: what it has, once it has ACKed
// all.
func (s *Session) Has(b *Differ, t xdstype.Type) iter.Seq[*encodecache.Entry] {
	return func(yield func(*encodecache.Entry) bool) {
		st := &s.types[t]
		if !st.watched || st.first {
			return
		}
		for _, e := range b.all(s.kind(t), st.sub, st.have) {
			if !yield(e) {
				return
			}
		}
	}
}

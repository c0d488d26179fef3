package ads

import (
	"iter"
	"time"

	"github.com/pilotd/pilotd/encodecache"
)

// record is what is told about one type of a stream to people.
type record struct {
	Sent, Acked         Mark
	Refused             Mark
	RefusedWith         string
	Responses, Refusals int
}

// Mark is one response: its nonce, the version that State-of-the-World gave it, and when.
type Mark struct {
	Nonce, Version string
	Time           time.Time
}

// maxRecorded is how much of an error is kept.
const maxRecorded = 4 << 10

func (r *record) sent(b *Batch, now time.Time) {
	r.Sent = Mark{b.Nonce, b.Version, now}
	r.Responses++
}

// acked notes an ACK; whole is that nothing of the type is held back any more.
func (r *record) acked(b *Batch, now time.Time, whole bool) {
	r.Acked = Mark{b.Nonce, b.Version, now}
	if whole {
		r.RefusedWith, r.Refused = "", Mark{}
	}
}

func (r *record) refused(b *Batch, now time.Time, message string) {
	r.Refused = Mark{b.Nonce, b.Version, now}
	r.RefusedWith = message[:min(len(message), maxRecorded)]
	r.Refusals++
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
func (s *Session) Status(t Type) Status {
	st := &s.types[t]
	out := Status{
		Watched: st.watched, Wildcard: st.sub.All, Names: st.sub.Names.Len(),
		Sent: st.log.Sent, Acked: st.log.Acked, Refused: st.log.Refused, Error: st.log.RefusedWith,
		Responses: st.log.Responses, Refusals: st.log.Refusals,
		Waiting: len(st.flights) > 0, Pending: st.blocked,
	}
	for name := range st.refusal.bad {
		out.Held = append(out.Held, name)
	}
	return out
}

// Subscription is what the client asks for of a type.
func (s *Session) Subscription(t Type) Subscription { return s.types[t].sub }

// Has yields what the client was sent of a type and has not been told to drop, by name: what it has, once it has ACKed all.
func (s *Session) Has(b *Book, t Type) iter.Seq[*encodecache.Entry] {
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

package ads

import (
	"iter"
	"strings"
	"time"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/xdstype"
)

// record is what debug pages say about one type of one stream. There are many of them, so that it is small and points
// to what most do not need.
type record struct {
	sentLast, ackedLast stamp
	responses           int
	refusals            *refusals // nil until the first
}

// refusals is what debug pages say about what the client refused.
type refusals struct {
	last    stamp // none when nothing is held back any more
	message string
	count   int
}

// label names a response on debug pages. All Sessions that were sent the response share it.
type label struct{ nonce, version string }

// stamp is a response, and when it was sent, ACKed or refused: nanoseconds of Unix time by the caller's clock, which
// must not jump. A stamp without a label stands for no response.
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

// nonce returns the nonce of the newest response; empty before the first.
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

// acked notes an ACK. whole tells that nothing of the type is held back any more.
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
	// a substring would keep the whole message in memory
	r.refusals.message = strings.Clone(message[:min(len(message), maxRecorded)])
	r.refusals.count++
}

// Status is what debug pages say about one type of a Session.
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
	// Held are the names of resources that the client refused. It is not sent them again until they change.
	Held []string
	// Responses and Refusals are how many there were on this stream.
	Responses, Refusals int
	// Waiting tells that the client has not answered a response yet, Pending that something waits for its answer.
	Waiting, Pending bool
}

// Status returns the Status of one type.
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

// Has yields, by name, what the client was sent of a type and not told to drop: what it has once it has ACKed
// everything.
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

package report

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Subject is what a call of Set is about: an object, and the part of pilotd that reports.
type Subject struct {
	// Owner names the part of pilotd that reports: "door", "plan".
	Owner string
	// Key is the object. Location is the file or API group if there is no object.
	Key      value.ObjectKey
	Location string
}

// Options are settings of a Registry. The zero value logs to slog.Default() and counts nothing.
type Options struct {
	// Log receives one line when a Problem begins. It must not block.
	Log *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Began is called for each Problem that begins; it may be nil. It must not call the Registry.
	Began func(kind value.Kind, cause Cause)
}

// Registry holds the Problems that exist now.
type Registry struct {
	// Immutable after New.
	log   *slog.Logger
	now   func() time.Time
	began func(value.Kind, Cause)

	mu sync.Mutex
	// Guarded by mu.
	subjects map[Subject][]*Standing
	refused  map[Problem]*refusal
	counts   map[Count]int
	dropped  int // refusals beyond MaxRefusals
	changes  uint64
	lines    limiter
}

// Count is a pair of labels of the metric that counts Problems: the kind of the object and the cause.
type Count struct {
	Kind  value.Kind
	Cause Cause
}

// refusal is a Problem caused by refusals of clients.
type refusal struct {
	Standing
	by map[string]struct{} // the node ids in Clients
}

// New returns an empty Registry.
func New(o Options) *Registry {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Began == nil {
		o.Began = func(value.Kind, Cause) {}
	}
	return &Registry{
		log: o.Log, now: o.Now, began: o.Began,
		subjects: map[Subject][]*Standing{}, refused: map[Problem]*refusal{}, counts: map[Count]int{},
	}
}

// Set replaces all that the subject's owner reported about it before by problems; with none it withdraws everything. A
// Problem that existed before continues: it is neither logged nor counted again.
func (r *Registry) Set(s Subject, problems []Problem) {
	r.mu.Lock()
	before := r.subjects[s]
	if len(before)+len(problems) == 0 {
		r.mu.Unlock()
		return
	}
	next := make([]*Standing, 0, len(problems))
	var lines []line
	for _, p := range problems {
		if slices.ContainsFunc(next, func(o *Standing) bool { return o.Problem == p }) {
			continue
		}
		if i := slices.IndexFunc(before, func(o *Standing) bool { return o.Problem == p }); i >= 0 {
			next = append(next, before[i])
			continue
		}
		st := &Standing{Problem: p, Since: r.now()}
		next = append(next, st)
		lines = r.begin(lines, st, "")
	}
	for _, o := range before {
		if !slices.Contains(next, o) {
			r.end(o.Problem)
		}
	}
	if len(next) == 0 {
		delete(r.subjects, s)
	} else {
		r.subjects[s] = next
	}
	r.mu.Unlock()
	r.write(lines)
}

// Refuse records that a client refused a resource. The first refusal begins the Problem p, and further ones are added
// to it. It lasts until Heal.
func (r *Registry) Refuse(p Problem, proxy, message string) {
	p.Cause = ClientRefused
	message = cut(message, MaxMessage)
	r.mu.Lock()
	f := r.refused[p]
	var lines []line
	if f == nil {
		if len(r.refused) >= MaxRefusals {
			r.dropped++
			r.mu.Unlock()
			return
		}
		f = &refusal{Standing: Standing{Problem: p, Since: r.now()}, by: map[string]struct{}{}}
		r.refused[p] = f
		lines = r.begin(nil, &f.Standing, proxy+": "+message)
	}
	if _, known := f.by[proxy]; !known {
		f.ClientsInAll++
		if len(f.Clients) < MaxClients {
			f.by[proxy] = struct{}{}
			f.Clients = append(f.Clients, Client{Proxy: strings.Clone(proxy), Message: message, Since: r.now()})
		}
	}
	r.mu.Unlock()
	r.write(lines)
}

// Heal withdraws what Refuse recorded about p.
func (r *Registry) Heal(p Problem) {
	p.Cause = ClientRefused
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.refused[p]; ok {
		delete(r.refused, p)
		r.end(p)
	}
}

// begin counts a Problem that begins, and appends its log line to lines. The caller holds mu.
func (r *Registry) begin(lines []line, st *Standing, said string) []line {
	kind := kindOf(st.Problem)
	r.counts[Count{kind, st.Cause}]++
	r.changes++
	r.began(kind, st.Cause)
	if ok, missed := r.lines.allow(r.now()); ok {
		lines = append(lines, line{st.Problem, said, missed})
	}
	return lines
}

// end counts the end of a Problem. The caller holds mu.
func (r *Registry) end(p Problem) {
	r.changes++
	c := Count{kindOf(p), p.Cause}
	if r.counts[c]--; r.counts[c] <= 0 {
		delete(r.counts, c)
	}
}

// kindOf returns the kind of a Problem for metrics, also for the Problem of a file, which has none.
func kindOf(p Problem) value.Kind {
	if p.Key.Kind == "" {
		return "File"
	}
	return p.Key.Kind
}

// All returns the present Problems in a stable order: by source, object, file, field and reason.
func (r *Registry) All() []Standing {
	r.mu.Lock()
	out := make([]Standing, 0, len(r.subjects)+len(r.refused))
	for _, list := range r.subjects {
		for _, st := range list {
			out = append(out, *st)
		}
	}
	for _, f := range r.refused {
		st := f.Standing
		st.Clients = slices.Clone(st.Clients)
		out = append(out, st)
	}
	r.mu.Unlock()
	slices.SortFunc(out, func(a, b Standing) int { return compare(a.Problem, b.Problem) })
	return out
}

// Changes counts all beginnings and ends of Problems so far.
func (r *Registry) Changes() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changes
}

func compare(a, b Problem) int {
	return cmp.Or(
		strings.Compare(a.Source, b.Source), strings.Compare(a.Key.String(), b.Key.String()), strings.Compare(a.Where,
			b.Where),
		strings.Compare(string(a.Cause), string(b.Cause)), strings.Compare(a.Field, b.Field),
		strings.Compare(a.Resource, b.Resource), strings.Compare(a.Reason, b.Reason),
	)
}

// Counts returns the number of present Problems by kind and cause.
func (r *Registry) Counts() map[Count]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[Count]int, len(r.counts))
	for c, n := range r.counts {
		out[c] = n
	}
	return out
}

// line is a log line to be written.
type line struct {
	problem Problem
	said    string
	missed  int // number of lines left out before this one
}

// write logs lines. The caller does not hold mu.
func (r *Registry) write(lines []line) {
	for _, l := range lines {
		p := l.problem
		args := []slog.Attr{slog.String("object", p.Key.String()), slog.String("cause", string(p.Cause)),
			slog.String("reason", p.Reason)}
		for _, a := range []slog.Attr{
			slog.String("source", p.Source), slog.String("where", p.Where), slog.String("field", p.Field),
			slog.String("resource", p.Resource), slog.String("client", l.said),
		} {
			if a.Value.String() != "" {
				args = append(args, a)
			}
		}
		if l.missed > 0 {
			args = append(args, slog.Int("linesLeftOut", l.missed))
		}
		level := slog.LevelWarn
		if p.Security || p.Cause == Panicked {
			level = slog.LevelError
		}
		r.log.LogAttrs(context.Background(), level, messageOf(p.Cause), args...)
	}
}

// messageOf returns the log message for a cause.
func messageOf(c Cause) string {
	switch c {
	case Invalid, Unreadable:
		return "refused"
	case Unavailable:
		return "a source cannot be read"
	case NotServed:
		return "set but not served"
	case Unresolved:
		return "names what cannot be used"
	case LeftOut:
		return "left out"
	case ClientRefused:
		return "a client refused"
	}
	return "a fault left something out"
}

// cut returns a copy of s, cut to n bytes.
func cut(s string, n int) string {
	if len(s) > n {
		s = s[:n] + "…"
	}
	return strings.ToValidUTF8(strings.Clone(s), "\uFFFD")
}

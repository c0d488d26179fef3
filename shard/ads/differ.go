package ads

import (
	"slices"
	"strconv"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/xdstype"
)

// Differ works out what differs between two Resources, for the Sessions of one worker. Within a pass (until Turn) equal
// questions get one answer, so that Sessions at the same state share one Batch.
type Differ struct {
	// Immutable after NewDiffer.
	rows     *xdstype.Table
	table    *NamesTable
	verdicts *Verdicts
	nonce    func() uint64

	// Owned by the worker goroutine; emptied by Turn.
	answers map[question]*answer
	digests map[digestKey]digest
	empties map[emptyKey]*encodecache.Entry
	unions  map[[2]*Names]*Names
	batches map[wholeKey]*Batch
	gaps    map[gap]*Batch

	// Owned by the worker goroutine: what is remembered beyond the pass.
	wholes       []map[wholeKey]*whole // by type
	fingerprints map[chunkKey]fingerprint

	// Owned by the worker goroutine: the room for a call's Effects, used again and again.
	effects []Effect

	// Owned by the worker goroutine: the sets of refused resources in use, and how many there were after the last
	// sweep.
	quarantines      quarantines
	quarantinesSwept int
}

// NewDiffer makes the Differ of one worker. rows are the types that its Sessions serve, nonce counts the responses of
// the process, table interns its subscriptions, and verdicts are what its clients have refused.
func NewDiffer(rows *xdstype.Table, table *NamesTable, verdicts *Verdicts, nonce func() uint64) *Differ {
	b := &Differ{rows: rows, table: table, verdicts: verdicts, nonce: nonce,
		wholes: make([]map[wholeKey]*whole, rows.Len()), fingerprints: map[chunkKey]fingerprint{}}
	for t := range b.wholes {
		b.wholes[t] = map[wholeKey]*whole{}
	}
	b.Turn()
	return b
}

// Turn ends a pass. Responses that are asked for from now on get new nonces.
func (b *Differ) Turn() {
	clear(b.effects[:cap(b.effects)])
	if b.answers != nil && len(b.answers)+len(b.digests)+len(b.empties)+len(b.unions)+len(b.batches)+len(b.gaps) == 0 {
		return
	}
	b.answers = map[question]*answer{}
	b.digests, b.empties = map[digestKey]digest{}, map[emptyKey]*encodecache.Entry{}
	b.unions, b.batches, b.gaps = map[[2]*Names]*Names{}, map[wholeKey]*Batch{}, map[gap]*Batch{}
}

// union returns the names of both, worked out once in a pass.
func (b *Differ) union(x, y *Names) *Names {
	if x == nil || y == nil || x == y {
		return b.table.Union(x, y)
	}
	key := [2]*Names{x, y}
	u, ok := b.unions[key]
	if !ok {
		u = b.table.Union(x, y)
		b.unions[key] = u
	}
	return u
}

// question is all that an answer depends on. It is a key: equal questions of one pass get the same answer.
type question struct {
	kind     kind
	sub      Subscription
	from, to *Resources
	// force are names of resources to send whatever the client has.
	force *Names
	// skip has the resources of which the client keeps a version that is not known here: no response mentions these.
	skip *Quarantine
	// keep leaves what is gone with the client, for now.
	keep bool
	// sum is the digest of from over sub; State-of-the-World only.
	sum digest
}

// kind is the type of a response, the variant of the protocol, and the sort of client.
type kind struct {
	row   *xdstype.Row
	delta bool
	// fallback tells that a name that does not exist is answered with an empty resource.
	fallback bool
	// sidecar tells that the client is one.
	sidecar bool
}

// answer is what a client is to be sent, and what it has afterwards.
type answer struct {
	to  *Resources
	sum digest
	// kept reports that to has something that is no longer desired.
	kept bool
	// items are what is to be sent; none when there is nothing to say. batch is the response, made when the first client
	// may be sent it.
	items []item
	batch *Batch
	mentioned
}

// mentions reports whether what is to be sent may name one of names.
func (a *answer) mentions(names *Names) bool {
	return a.mentioned.in(func() []item { return a.items }, names)
}

// ask returns the answer to q. It is worked out once in a pass.
func (b *Differ) ask(q question) *answer {
	if a, ok := b.answers[q]; ok {
		return a
	}
	a := b.work(q)
	b.answers[q] = a
	return a
}

func (b *Differ) work(q question) *answer {
	a := &answer{to: q.to, sum: q.sum}
	if q.sub.None() {
		return a
	}
	var items []item
	var kept []chunked.Edit[*encodecache.Entry]
	b.changes(q, func(it item, gone bool) {
		if q.skip.leaves(it.name) {
			return
		}
		if q.keep && gone && !q.force.Contains(it.name) { // the client may not have what is forced
			kept = append(kept, chunked.Edit[*encodecache.Entry]{Key: it.name, Value: it.old})
			return
		}
		if !sameContent(it.old, it.new) {
			items = append(items, it)
			if !q.kind.delta {
				a.sum = a.sum.minus(digestOf(it.old)).plus(digestOf(it.new))
			}
		}
	})
	switch {
	case len(kept) > 0 && len(items) == 0 && q.force == nil:
		a.kept, a.to = true, q.from
		return a
	case len(kept) > 0:
		a.kept, a.to = true, &Resources{Section: q.to.section().Apply(kept)}
	}
	a.items = b.forced(q, items)
	if !q.kind.delta && !q.kind.row.Complete && !slices.ContainsFunc(a.items, item.exists) {
		a.items = nil // where responses need not be complete, absence says nothing
	}
	return a
}

// changes calls f for each subscribed name that may differ between q.from and q.to, in order. gone tells that q.from
// has it and q.to has not.
func (b *Differ) changes(q question, f func(it item, gone bool)) {
	switch {
	case q.from == q.to:
	case q.sub.All && q.from == nil:
		for name, e := range q.to.section().All() {
			f(item{name: name, new: e}, false)
		}
	case !q.sub.All && (q.from == nil || q.sub.Names.Len() <= fewNames):
		for name := range q.sub.Names.All() {
			b.change(q, item{name: name, old: q.from.get(name), new: q.to.get(name)}, f)
		}
	default:
		q.to.section().Diff(q.from.section(), func(c chunked.Change[*encodecache.Entry]) {
			if q.sub.Has(c.Key) {
				b.change(q, item{name: c.Key, old: c.Old, new: c.New}, f)
			}
		})
	}
}

// fewNames is up to how many names it is quicker to look up each than to compare two Resources.
const fewNames = 16

// change calls f for one name, with what q.from and q.to have of it. Where the type answers for names that do not
// exist, f gets that answer instead of nil.
func (b *Differ) change(q question, it item, f func(it item, gone bool)) {
	gone := it.old != nil && it.new == nil
	if q.kind.fallback && q.sub.Names.Contains(it.name) {
		if it.new == nil {
			it.new = b.empty(q.kind.row, it.name)
		}
		if it.old == nil && q.from != nil {
			it.old = b.empty(q.kind.row, it.name)
		}
	}
	if it.old != nil || it.new != nil {
		f(it, gone)
	}
}

// lookup returns what a client with that subscription gets for name: the resource, its fallback, or nil.
func (b *Differ) lookup(k kind, sub Subscription, c *Resources, name string) *encodecache.Entry {
	if e := c.get(name); e != nil || !k.fallback || c == nil || !sub.Names.Contains(name) {
		return e
	}
	return b.empty(k.row, name)
}

// forced adds the items of q.force that are not there yet.
func (b *Differ) forced(q question, items []item) []item {
	changed := len(items)
	for name := range q.force.All() {
		if !q.sub.Has(name) || q.skip.leaves(name) {
			continue
		}
		if _, there := slices.BinarySearchFunc(items[:changed], name, compareItem); there {
			continue
		}
		items = append(items, item{
			name: name,
			old:  b.lookup(q.kind, q.sub, q.from, name),
			new:  b.lookup(q.kind, q.sub, q.to, name),
		})
	}
	if len(items) > changed {
		slices.SortFunc(items, func(a, b item) int { return compareItem(a, b.name) })
	}
	return items
}

func compareItem(it item, name string) int {
	switch {
	case it.name < name:
		return -1
	case it.name > name:
		return 1
	}
	return 0
}

// response returns the response of an answer that has something to say.
func (b *Differ) response(q question, a *answer) *Batch {
	if a.batch != nil {
		return a.batch
	}
	out := &Batch{TypeURL: q.kind.row.URL, Delta: q.kind.delta, items: a.items}
	if !q.kind.delta && q.kind.row.Complete {
		out.Entries = b.all(q.kind, q.sub, a.to)
		if q.sub.All {
			out.Section = a.to.section()
		}
	} else {
		for _, it := range a.items {
			switch {
			case it.exists():
				out.Entries = append(out.Entries, it.new)
			case q.kind.delta:
				out.Removed = append(out.Removed, it.name)
			}
		}
	}
	a.batch = b.finish(out, a.sum)
	return a.batch
}

// finish gives a Batch its nonce and version.
func (b *Differ) finish(out *Batch, sum digest) *Batch {
	out.Nonce = strconv.FormatUint(b.nonce(), 10)
	if !out.Delta {
		out.Version = sum.version()
	}
	out.label = &label{nonce: out.Nonce, version: out.Version}
	return out
}

// all returns everything of c that sub asks for.
func (b *Differ) all(k kind, sub Subscription, c *Resources) []*encodecache.Entry {
	var out []*encodecache.Entry
	if sub.All {
		out = make([]*encodecache.Entry, 0, c.section().Len())
		for _, e := range c.section().All() {
			out = append(out, e)
		}
		return out
	}
	out = make([]*encodecache.Entry, 0, sub.Names.Len())
	for name := range sub.Names.All() {
		if e := b.lookup(k, sub, c, name); e != nil {
			out = append(out, e)
		}
	}
	return out
}

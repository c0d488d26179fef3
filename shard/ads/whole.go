package ads

import "github.com/pilotd/pilotd/encodecache"

// whole is everything that a subscription asks for of one Content: what a client that has nothing is sent.
type whole struct {
	items   []item
	entries []*encodecache.Entry
	removed []string // names that do not exist
	sum     digest   // State-of-the-World only
	section Section  // that of the Content, if entries are all of it
}

type wholeKey struct {
	kind kind
	sub  Subscription
	of   *Content
}

// maxWholes bounds how many of them a Book remembers. Unlike answers they outlive the pass: clients that connect one after the other ask
// for the same.
const maxWholes = 32

func (b *Book) whole(k kind, sub Subscription, c *Content) *whole {
	key := wholeKey{k, sub, c}
	if w, ok := b.wholes[key]; ok {
		return w
	}
	if len(b.wholes) >= maxWholes {
		clear(b.wholes)
	}
	w := &whole{entries: b.all(k, sub, c)}
	if len(w.entries) == c.section().Len() && (sub.All || !k.fallback) {
		w.section = c.section()
	}
	w.items = make([]item, 0, max(len(w.entries), sub.Names.Len()))
	for _, e := range w.entries {
		w.items = append(w.items, item{name: e.Name(), new: e})
	}
	if !k.delta {
		w.sum = w.digest()
	}
	if len(w.entries) < sub.Names.Len() || sub.All {
		for name := range sub.Names.All() {
			if b.lookup(k, sub, c, name) == nil {
				w.items = append(w.items, item{name: name})
				w.removed = append(w.removed, name)
			}
		}
	}
	b.wholes[key] = w
	return w
}

// digest is that of the entries; of a section, the digests of its chunks are known to all that share them.
func (w *whole) digest() (d digest) {
	if w.section.Len() > 0 {
		return digestOfSection(w.section)
	}
	for _, e := range w.entries {
		d = d.plus(digestOf(e))
	}
	return d
}

// wholeBatch is the response for a client that has nothing; those who ask in one pass share it.
func (b *Book) wholeBatch(k kind, sub Subscription, c *Content) *Batch {
	key := question{kind: k, sub: sub, to: c, force: sub.Names}
	a, ok := b.answers[key]
	if !ok {
		w := b.whole(k, sub, c)
		out := &Batch{TypeURL: k.typ.URL(), Delta: k.delta, Entries: w.entries, Section: w.section, items: w.items}
		if k.delta {
			out.Removed = w.removed
		}
		a = &answer{to: c, sum: w.sum, items: w.items, batch: b.finish(out, w.sum)}
		b.answers[key] = a
	}
	return a.batch
}

// Forget lets go of what the Book remembers beyond the pass; to be called now and then, when Contents have changed.
func (b *Book) Forget() { clear(b.wholes) }

type digestKey struct {
	kind kind
	sub  Subscription
	of   *Content
}

// digest is the digest of c over sub, from nothing.
func (b *Book) digest(k kind, sub Subscription, c *Content) digest {
	if c == nil || sub.None() {
		return digest{}
	}
	if w, ok := b.wholes[wholeKey{k, sub, c}]; ok {
		return w.sum
	}
	key := digestKey{k, sub, c}
	d, ok := b.digests[key]
	if !ok {
		for _, e := range b.all(k, sub, c) {
			d = d.plus(digestOf(e))
		}
		b.digests[key] = d
	}
	return d
}

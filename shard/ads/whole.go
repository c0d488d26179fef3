package ads

import (
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/xdstype"
)

// whole is everything that a subscription asks for of some Resources: what a client that has nothing is sent.
type whole struct {
	entries       []*encodecache.Entry
	removed       []string    // names that do not exist
	sum           digest      // State-of-the-World only
	section       Section     // that of the Resources, if entries are all of them
	least         *Names      // the smallest of them, once somebody asked
	fingerprint   fingerprint // of a Delta client that has them, once somebody came back: then fingerprinted
	fingerprinted bool
	mentioned
}

type wholeKey struct {
	kind kind
	sub  Subscription
	of   *Resources
}

// maxWholes bounds how many wholes a Differ remembers of each type. Unlike answers they outlive the pass, for clients
// that connect one after the other ask for the same.
const maxWholes = 32

func (b *Differ) whole(k kind, sub Subscription, c *Resources) *whole {
	key := wholeKey{k, sub, c}
	known := b.wholes[k.row.Type]
	if w, ok := known[key]; ok {
		return w
	}
	if len(known) >= maxWholes {
		clear(known)
	}
	w := &whole{entries: b.all(k, sub, c)}
	private := k.row.Source == xdstype.FromIdentity // then nothing keeps it, or shares what it is sent as
	if !private && len(w.entries) == c.section().Len() && (sub.All || !k.fallback) {
		w.section = c.section()
	}
	if !k.delta {
		w.sum = w.digest()
	}
	if len(w.entries) < sub.Names.Len() || sub.All {
		for name := range sub.Names.All() {
			if b.lookup(k, sub, c, name) == nil {
				w.removed = append(w.removed, name)
			}
		}
	}
	if !private {
		known[key] = w
	}
	return w
}

// mentions reports whether any of it may name one of names.
func (w *whole) mentions(names *Names) bool { return w.mentioned.in(w.items, names) }

// items returns the items of a response that sends all this.
func (w *whole) items() []item {
	items := make([]item, 0, len(w.entries)+len(w.removed))
	for _, e := range w.entries {
		items = append(items, item{name: e.Name(), new: e})
	}
	for _, name := range w.removed {
		items = append(items, item{name: name})
	}
	return items
}

// none reports whether a response that sends all this says nothing.
func (w *whole) none() bool { return len(w.entries)+len(w.removed) == 0 }

// digest returns the digest of the entries. For a section it adds up the digests of the chunks, which all that share
// them have.
func (w *whole) digest() (d digest) {
	if w.section.Len() > 0 {
		return digestOfSection(w.section)
	}
	for _, e := range w.entries {
		d = d.plus(digestOf(e))
	}
	return d
}

// wholeBatch returns the response for a client that has nothing. All that ask in one pass share it.
func (b *Differ) wholeBatch(k kind, sub Subscription, c *Resources) *Batch {
	key := wholeKey{k, sub, c}
	batch, ok := b.batches[key]
	if !ok {
		w := b.whole(k, sub, c)
		batch = &Batch{TypeURL: k.row.URL, Delta: k.delta, Entries: w.entries, Section: w.section, whole: w}
		if k.delta {
			batch.Removed = w.removed
		}
		b.finish(batch, w.sum)
		b.batches[key] = batch
	}
	return batch
}

// Forget lets go of what the Differ remembers beyond the pass. The worker calls it now and then, when
// what is desired has changed.
func (b *Differ) Forget() {
	for _, known := range b.wholes {
		clear(known)
	}
	clear(b.fingerprints)
}

type digestKey struct {
	kind kind
	sub  Subscription
	of   *Resources
}

// digest computes the digest of what c has of sub.
func (b *Differ) digest(k kind, sub Subscription, c *Resources) digest {
	if c == nil || sub.None() {
		return digest{}
	}
	if w, ok := b.wholes[k.row.Type][wholeKey{k, sub, c}]; ok {
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

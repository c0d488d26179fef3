package ads

import (
	"bytes"
	"hash/maphash"
	"runtime"
	"unicode/utf8"
	"weak"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// Versions are initial_resource_versions: what a Delta client has of a type from an earlier stream. Most clients that
// come back have exactly what they should have, which the fingerprint of what they report shows; the names are decoded
// only for the others.
type Versions struct {
	// Immutable.
	fingerprint fingerprint
	n           int

	// Owned by the worker goroutine of the Session that they went to.
	raw    []byte            // until they are decoded
	byName map[string]string // nil until then
}

// fingerprint is a hash of a set of (name, version) that does not depend on their order, for each Envoy has an order of
// its own: the sum of the members' hashes. The hashes are keyed by the seeds of a table, so that no client can find
// another set with the same fingerprint.
type fingerprint [2]uint64

func (c fingerprint) plus(o fingerprint) fingerprint { return fingerprint{c[0] + o[0], c[1] + o[1]} }

// Numbers of the fields of an entry of initial_resource_versions.
const (
	entryName    = 1
	entryVersion = 2
)

// Versions returns those in raw, a run of length-delimited fields (tag, length, entry) as a request carries its
// initial_resource_versions. It copies raw, and returns nil when there are none.
func (t *NamesTable) Versions(raw []byte) (*Versions, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	v := &Versions{}
	var room [256]byte
	err := eachPair(raw, func(name, version []byte) {
		v.n++
		v.fingerprint = v.fingerprint.plus(t.fingerprintOf(appendPair(room[:0], name, version)))
		yield(v.n)
	})
	if err != nil {
		return nil, err
	}
	v.raw = bytes.Clone(raw)
	size := int64(len(raw) + v.n*nameCost)
	t.held.Add(size)
	runtime.AddCleanup(v, func(n int64) { t.held.Add(-n) }, size)
	return v, nil
}

// VersionsOf returns those of a map from name to version, which it keeps.
func (t *NamesTable) VersionsOf(byName map[string]string) *Versions {
	if len(byName) == 0 {
		return nil
	}
	v := &Versions{n: len(byName), byName: byName}
	for name, version := range byName {
		v.fingerprint = v.fingerprint.plus(t.fingerprintOf(appendPair(nil, []byte(name), []byte(version))))
	}
	return v
}

// eachPair calls f with each entry of raw. The arguments are parts of raw.
func eachPair(raw []byte, f func(name, version []byte)) error {
	for at := 0; at < len(raw); {
		_, kind, n := protowire.ConsumeTag(raw[at:])
		if n < 0 || kind != protowire.BytesType {
			return ErrNames
		}
		entry, m := protowire.ConsumeBytes(raw[at+n:])
		if m < 0 {
			return ErrNames
		}
		at += n + m
		name, version, err := pairOf(entry)
		if err != nil {
			return err
		}
		if len(name) > MaxName {
			return &LongNameError{len(name)}
		}
		f(name, version)
	}
	return nil
}

// pairOf returns key and value of an entry of a map of strings. A missing field is empty; if a field comes twice, the
// last one counts.
func pairOf(entry []byte) (name, version []byte, err error) {
	for at := 0; at < len(entry); {
		num, kind, n := protowire.ConsumeTag(entry[at:])
		if n < 0 {
			return nil, nil, ErrNames
		}
		at += n
		if kind != protowire.BytesType || num != entryName && num != entryVersion {
			if n = protowire.ConsumeFieldValue(num, kind, entry[at:]); n < 0 {
				return nil, nil, ErrNames
			}
			at += n
			continue
		}
		text, n := protowire.ConsumeBytes(entry[at:])
		if n < 0 || !utf8.Valid(text) {
			return nil, nil, ErrNames
		}
		at += n
		if num == entryName {
			name = text
		} else {
			version = text
		}
	}
	return name, version, nil
}

// appendPair appends a pair in the form in which it is hashed.
func appendPair(b, name, version []byte) []byte {
	b = protowire.AppendVarint(b, uint64(len(name)))
	return append(append(b, name...), version...)
}

func (t *NamesTable) fingerprintOf(pair []byte) fingerprint {
	return fingerprint{maphash.Bytes(t.seeds[0], pair), maphash.Bytes(t.seeds[1], pair)}
}

// Len returns the number of names.
func (v *Versions) Len() int {
	if v == nil {
		return 0
	}
	return v.n
}

// All returns the versions by name.
func (v *Versions) All() map[string]string {
	if v == nil {
		return nil
	}
	if v.byName == nil {
		v.byName = make(map[string]string, v.n)
		// raw was read once before, so that there is no error.
		_ = eachPair(v.raw, func(name, version []byte) { v.byName[string(name)] = string(version) })
		v.raw = nil
	}
	return v.byName
}

// has reports whether there is a version of name.
func (v *Versions) has(name string) bool {
	_, ok := v.All()[name]
	return ok
}

// forget takes out the resources of items, which the client has been sent meanwhile.
func (v *Versions) forget(items []item) {
	for _, it := range items {
		delete(v.All(), it.name)
	}
}

// fingerprintOfWhole returns the fingerprint of a client that has all of w.
func (b *Differ) fingerprintOfWhole(w *whole) fingerprint {
	if w.fingerprinted {
		return w.fingerprint
	}
	w.fingerprinted = true
	if w.section.Len() == 0 {
		w.fingerprint = b.fingerprintOfEntries(w.entries)
		return w.fingerprint
	}
	w.fingerprint = b.fingerprintOfSection(w.section)
	return w.fingerprint
}

// maxFingerprints bounds the chunks of which a Differ remembers the fingerprints.
const maxFingerprints = 1 << 14

// fingerprintOfSection returns the fingerprint of all members of s. It remembers that of each chunk, for many classes
// have the same chunks.
func (b *Differ) fingerprintOfSection(s Section) (sum fingerprint) {
	if len(b.fingerprints) > maxFingerprints {
		clear(b.fingerprints)
	}
	for c := range s.Chunks() {
		sum = sum.plus(b.fingerprintOfChunk(c))
	}
	return sum
}

// chunkKey names a chunk and does not hold it: what is remembered of resources that are gone keeps none of them.
type chunkKey = weak.Pointer[chunked.Chunk[*encodecache.Entry]]

func (b *Differ) fingerprintOfChunk(c *chunked.Chunk[*encodecache.Entry]) fingerprint {
	k := weak.Make(c)
	sum, ok := b.fingerprints[k]
	if !ok {
		sum = b.fingerprintOfEntries(c.Values())
		b.fingerprints[k] = sum
	}
	return sum
}

func (b *Differ) fingerprintOfEntries(entries []*encodecache.Entry) (sum fingerprint) {
	var room [256]byte
	for _, e := range entries {
		sum = sum.plus(b.table.fingerprintOf(appendPair(room[:0], []byte(e.Name()), []byte(e.Version()))))
	}
	return sum
}

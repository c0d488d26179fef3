package ads

import (
	"hash/maphash"
	"runtime"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// listing is what is known of names before they are decoded.
type listing struct {
	spelling spelling // the sum of their hashes, the same in any order
	count    int
	bytes    int // that a set of them takes
}

// add counts a name with these hashes.
func (l *listing) add(bytes int, hashes spelling) {
	l.count++
	l.bytes += bytes + nameCost
	l.spelling[0] += hashes[0]
	l.spelling[1] += hashes[1]
}

// newListing returns a listing of count names, none of which has been added.
func newListing(count int) listing { return listing{spelling: spelling{uint64(count), 1}} }

// list reads raw, a run of names, without decoding it.
func (t *NamesTable) list(raw []byte) (listing, error) {
	l := newListing(0)
	for at := 0; at < len(raw); {
		_, kind, n := protowire.ConsumeTag(raw[at:])
		if n < 0 || kind != protowire.BytesType {
			return l, ErrNames
		}
		at += n
		b, n := protowire.ConsumeBytes(raw[at:])
		if n < 0 || !utf8.Valid(b) {
			return l, ErrNames
		}
		if len(b) > MaxName {
			return l, &LongNameError{len(b)}
		}
		l.add(len(b), spelling{maphash.Bytes(t.seeds[0], b), maphash.Bytes(t.seeds[1], b)})
		at += n
		yield(l.count)
	}
	l.spelling[0] += uint64(l.count)
	return l, nil
}

// yield lets other goroutines go on after each 2,048 of many names, some tenths of a millisecond: who names 190,000
// must not keep a processor from those who wait for a change until the scheduler takes it away, after 10 ms.
func yield(n int) {
	if n%2048 == 0 {
		runtime.Gosched()
	}
}

// decode returns the names in raw, which list has read: each a copy, for a set that keeps one name must not keep all of
// the request.
func (l *listing) decode(raw []byte) []string {
	names := make([]string, 0, l.count)
	for at := 0; at < len(raw); {
		_, _, tag := protowire.ConsumeTag(raw[at:])
		b, n := protowire.ConsumeBytes(raw[at+tag:])
		names = append(names, string(b))
		yield(len(names))
		at += tag + n
	}
	return names
}

// listed returns the spelling of names as a list.
func (t *NamesTable) listed(names []string) spelling {
	l := newListing(len(names))
	for _, name := range names {
		l.add(len(name), spelling{maphash.String(t.seeds[0], name), maphash.String(t.seeds[1], name)})
	}
	return l.spelling
}

package grpcstream

import (
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is a field of a request, whichever of the two kinds of request it is.
type field uint8

// The fields that are read. The numbers of the two kinds differ, so each has a function from number to field. Resource
// locators are not supported; like all that is unknown they are passed over.
const (
	unknown field = iota
	version
	node
	names // resource_names, resource_names_subscribe
	typeURL
	nonce
	errorDetail
	unsubscribe
	initial

	numFields
)

// sotwField returns the numbers of envoy.service.discovery.v3.DiscoveryRequest.
func sotwField(n protowire.Number) field {
	switch n {
	case 1:
		return version
	case 2:
		return node
	case 3:
		return names
	case 4:
		return typeURL
	case 5:
		return nonce
	case 6:
		return errorDetail
	}
	return unknown
}

// deltaField returns the numbers of envoy.service.discovery.v3.DeltaDiscoveryRequest.
func deltaField(n protowire.Number) field {
	switch n {
	case 1:
		return node
	case 2:
		return typeURL
	case 3:
		return names
	case 4:
		return unsubscribe
	case 5:
		return initial
	case 6:
		return nonce
	case 7:
		return errorDetail
	}
	return unknown
}

// region is where the occurrences of one field lie in a message. Usually they follow each other and are one slice of
// it; if they do not, they are copied together when they are needed.
type region struct {
	count      int
	start, end int    // of the last run, tags included
	earlier    []span // the runs before it
	bytes      int    // of the runs before it
	last       []byte // content of the last occurrence
	present    bool
}

// span is a part of a message.
type span struct{ start, end int32 }

func (r *region) add(start, end int, content []byte) {
	if r.present && start != r.end {
		r.earlier = append(r.earlier, span{int32(r.start), int32(r.end)})
		r.bytes += r.end - r.start
		r.start = start
	}
	if !r.present {
		r.start, r.present = start, true
	}
	r.end, r.last = end, content
	r.count++
}

// size returns the number of bytes of all occurrences, with their tags.
func (r *region) size() int { return r.bytes + r.end - r.start }

// run returns all occurrences with their tags, without anything between them: a part of message, or in room.
func (r *region) run(message []byte, room *[]byte) []byte {
	if len(r.earlier) == 0 {
		return message[r.start:r.end]
	}
	*room = slices.Grow((*room)[:0], r.size())
	for _, s := range r.earlier {
		*room = append(*room, message[s.start:s.end]...)
	}
	*room = append(*room, message[r.start:r.end]...)
	return *room
}

// merged returns the content of a message field: that of all occurrences one after the other, which is how protobuf
// merges them.
func (r *region) merged(message []byte) []byte {
	if r.count <= 1 {
		return r.last
	}
	var out []byte
	eachContent(r.run(message, new([]byte)), func(b []byte) error { out = append(out, b...); return nil })
	return out
}

// regions are the fields of one message.
type regions [numFields]region

// walk finds the fields of message. What is unknown, or has an unexpected wire type, is passed over if it is
// well-formed.
func (r *regions) walk(message []byte, fieldOf func(protowire.Number) field) error {
	for at := 0; at < len(message); {
		num, kind, n := protowire.ConsumeTag(message[at:])
		if n < 0 {
			return protowire.ParseError(n)
		}
		if num > protowire.MaxValidNumber {
			return errNumber
		}
		f := unknown
		if kind == protowire.BytesType {
			f = fieldOf(num)
		}
		if f == unknown {
			m := protowire.ConsumeFieldValue(num, kind, message[at+n:])
			if m < 0 {
				return protowire.ParseError(m)
			}
			at += n + m
			continue
		}
		content, m := protowire.ConsumeBytes(message[at+n:])
		if m < 0 {
			return protowire.ParseError(m)
		}
		r[f].add(at, at+n+m, content)
		tag := message[at]
		at += n + m
		if n == 1 {
			at = r[f].follow(message, at, tag)
		}
	}
	return nil
}

// follow adds the fields at at that are like the last one, with the same one-byte tag, as far as their lengths are one
// byte. It returns where they end. Nearly all of a big request is such a run.
func (r *region) follow(message []byte, at int, tag byte) int {
	for at+1 < len(message) && message[at] == tag {
		n := int(message[at+1])
		if n >= 0x80 || n > len(message)-at-2 {
			break
		}
		r.last = message[at+2 : at+2+n]
		at += 2 + n
		r.count++
	}
	r.end = at
	return at
}

// eachContent calls f with the content of each field of run, which must be well-formed and of length-delimited fields
// only.
func eachContent(run []byte, f func([]byte) error) error {
	for at := 0; at < len(run); {
		_, _, n := protowire.ConsumeTag(run[at:])
		b, m := protowire.ConsumeBytes(run[at+n:])
		if err := f(b); err != nil {
			return err
		}
		at += n + m
	}
	return nil
}

// text returns the content of a string field, checked: the last occurrence counts, but all must be UTF-8.
func (r *region) text(message []byte) ([]byte, error) {
	if r.count > 1 {
		if err := eachContent(r.run(message, new([]byte)), checkText); err != nil {
			return nil, err
		}
	}
	return r.last, checkText(r.last)
}

func checkText(b []byte) error {
	if !utf8.Valid(b) {
		return errNotUTF8
	}
	return nil
}

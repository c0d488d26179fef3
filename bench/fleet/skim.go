package fleet

import "encoding/binary"

// skimmer finds the version (or system version), the type and the nonce of a response in the bytes of a stream as they
// arrive, without storing the response, because a fleet would need that memory a thousand times. Both variants of
// response have these in fields 1, 4 and 5.
type skimmer struct {
	version, typeURL, nonce []byte
	size                    int // of the message

	started bool    // the length of the message is known
	left    int     // bytes of the message still to come
	skip    int     // bytes of the present field to skip
	keep    *[]byte // receives the bytes of the present field, if it is wanted
	need    int     // number of bytes still missing in keep
	head    []byte  // the start of a message or field that is not complete yet
}

// complete reports whether the present message has ended.
func (s *skimmer) complete() bool { return s.started && s.left == 0 }

// reset starts the next message.
func (s *skimmer) reset() {
	s.version, s.typeURL, s.nonce = s.version[:0], s.typeURL[:0], s.nonce[:0]
	s.started, s.size = false, 0
}

// feed takes bytes, at most up to the end of the message, and returns the rest.
func (s *skimmer) feed(b []byte) []byte {
	for len(b) > 0 && !s.complete() {
		switch {
		case !s.started:
			s.head = append(s.head, b[0])
			b = b[1:]
			if len(s.head) == 5 {
				s.size = int(binary.BigEndian.Uint32(s.head[1:]))
				s.started, s.left, s.head = true, s.size, s.head[:0]
			}
		case s.skip > 0:
			n := min(s.skip, len(b))
			s.skip, s.left, b = s.skip-n, s.left-n, b[n:]
		case s.need > 0:
			n := min(s.need, len(b))
			*s.keep = append(*s.keep, b[:n]...)
			s.need, s.left, b = s.need-n, s.left-n, b[n:]
		default:
			s.head = append(s.head, b[0])
			s.left--
			b = b[1:]
			s.field()
		}
	}
	return b
}

// field starts a field once its key, which has one byte for all fields here, and its length are complete.
func (s *skimmer) field() {
	if len(s.head) < 2 {
		return
	}
	length, n := binary.Uvarint(s.head[1:])
	if n == 0 {
		return
	}
	switch s.head[0] >> 3 {
	case 1:
		s.keep, s.need = &s.version, int(length)
	case 4:
		s.keep, s.need = &s.typeURL, int(length)
	case 5:
		s.keep, s.need = &s.nonce, int(length)
	default:
		s.skip = int(length)
	}
	s.head = s.head[:0]
}

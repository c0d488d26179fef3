package sidecar

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Response is a response as a Client takes it.
type Response struct {
	// Type is meaningless where Known is false.
	Type  Type
	Known bool
	// Bytes is the size of the message.
	Bytes int

	url, version, nonce string
	resources           []*Resource
	removed             []string
}

// Numbers of the fields of responses: in both protocols, but for removed, which is of the incremental one.
const (
	responseVersion, responseResources, responseURL, responseNonce, responseRemoved = 1, 2, 4, 5, 6
)

// What a client keeps for the next response instead of making it anew, at most.
const (
	keptBytes     = 4 << 10
	keptResources = 64
)

// parser finds responses in the bytes of a stream, as they come. It holds one field at a time.
type parser struct {
	// Immutable.
	table *Table
	delta bool

	response Response
	started  bool   // the length of the message is known
	left     int    // bytes of the message still to come
	head     []byte // the beginning of a message or field that is not complete yet
	field    protowire.Number
	need     int    // bytes of the field still to come; the others are in buf
	buf      []byte // part of a field
}

// feed takes bytes up to the end of the message at most, and returns the others and whether the response is complete.
func (p *parser) feed(b []byte) (rest []byte, complete bool, err error) {
	for len(b) > 0 || p.started && p.left == 0 {
		switch {
		case !p.started:
			p.head = append(p.head, b[0])
			b = b[1:]
			if len(p.head) < 5 {
				continue
			}
			if p.head[0] != 0 {
				return nil, false, fmt.Errorf("a compressed message")
			}
			p.response.Bytes = int(binary.BigEndian.Uint32(p.head[1:]))
			p.started, p.left, p.head = true, p.response.Bytes, p.head[:0]
		case p.left == 0:
			if p.need > 0 || len(p.head) > 0 {
				return nil, false, fmt.Errorf("a message ends within a field")
			}
			p.started = false
			p.response.Type, p.response.Known = typeOf([]byte(p.response.url))
			return b, true, nil
		case p.need > 0:
			if b, err = p.content(b); err != nil {
				return nil, false, err
			}
		default:
			p.head = append(p.head, b[0])
			p.left--
			b = b[1:]
			if err := p.begin(); err != nil {
				return nil, false, err
			}
		}
	}
	return nil, false, nil
}

// begin begins a field when its key and its length are there.
func (p *parser) begin() error {
	num, kind, n := protowire.ConsumeTag(p.head)
	if n < 0 {
		return nil // Not complete: what is malformed grows until the message ends.
	}
	v, m := protowire.ConsumeVarint(p.head[n:])
	if m < 0 {
		return nil
	}
	p.head = p.head[:0]
	switch kind {
	case protowire.VarintType:
		return nil
	case protowire.BytesType:
		if v > uint64(p.left) {
			return fmt.Errorf("field %d is longer than its message", num)
		}
		p.field, p.need = num, int(v)
		return nil
	}
	return fmt.Errorf("field %d is of wire type %d", num, kind)
}

// content takes bytes of the present field, and returns those after it.
func (p *parser) content(b []byte) ([]byte, error) {
	n := min(p.need, len(b))
	part, rest := b[:n], b[n:]
	p.need -= n
	p.left -= n
	if p.need > 0 {
		if p.buf == nil {
			p.buf = make([]byte, 0, n+p.need)
		}
		p.buf = append(p.buf, part...)
		return rest, nil
	}
	if len(p.buf) > 0 {
		p.buf = append(p.buf, part...)
		part = p.buf
	}
	err := p.take(part)
	if p.buf = p.buf[:0]; cap(p.buf) > keptBytes {
		p.buf = nil
	}
	return rest, err
}

// take takes a complete field.
func (p *parser) take(b []byte) error {
	r := &p.response
	switch p.field {
	case responseVersion:
		r.version = string(b)
	case responseURL:
		r.url = string(b)
	case responseNonce:
		r.nonce = string(b)
	case responseRemoved:
		if p.delta {
			r.removed = append(r.removed, string(b))
		}
	case responseResources:
		resource, err := p.table.resource(b, p.delta)
		if err != nil {
			return err
		}
		if resource != nil {
			r.resources = append(r.resources, resource)
		}
	}
	return nil
}

// reset makes ready for the next response.
func (p *parser) reset() {
	kept := p.response.resources[:0]
	if cap(kept) > keptResources {
		kept = nil
	}
	p.response = Response{resources: kept}
}

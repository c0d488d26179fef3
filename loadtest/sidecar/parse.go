package sidecar

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilotd/pilotd/xdstype"
)

// Response is a response in the form that a Client takes.
type Response struct {
	// Type is meaningless unless Known.
	Type  xdstype.Type
	Known bool
	// Bytes is the size of the message.
	Bytes int

	url, version, nonce string
	resources           []*Resource
	removed             []string
}

// Field numbers of responses, the same in both variants except for removed, which only the incremental one has.
const (
	responseVersion, responseResources, responseURL, responseNonce, responseRemoved = 1, 2, 4, 5, 6
)

// keptResources is the number of resources for which a parser keeps memory between responses.
const keptResources = 16

// parser finds responses in the bytes of a stream as they arrive. It stores one field at a time, and of a big resource
// one block.
type parser struct {
	// Immutable.
	table *Table
	form  form

	response Response
	started  bool   // the length of the message is known
	left     int    // bytes of the message still to come
	head     []byte // the start of a message or field that is not complete yet
	field    protowire.Number
	need     int            // bytes of the field still to come
	part     []byte         // bytes of the field so far, if it is not complete
	borrowed *[bigSize]byte // the memory of part, for a resource
	big      *big           // receives the field, if it is a big resource
	space    [headSize]byte // memory of head
}

// headSize is the most bytes that the key and the length of a field take.
const headSize = 20

// feed takes bytes, at most up to the end of the message. It returns the rest, and whether the response is complete.
func (p *parser) feed(b []byte) (rest []byte, complete bool, err error) {
	if p.head == nil {
		p.head = p.space[:0]
	}
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

// begin starts a field once its key and its length are complete.
func (p *parser) begin() error {
	if len(p.head) > headSize {
		return fmt.Errorf("a field without an end to its key")
	}
	num, kind, n := protowire.ConsumeTag(p.head)
	if n < 0 {
		return nil // incomplete; malformed input grows until it is too long or the message ends
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
		if num == responseResources && v > bigSize {
			p.big = &big{table: p.table, form: p.form, size: p.need}
		}
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
	switch {
	case p.big != nil:
		p.big.write(part)
		if p.need > 0 {
			return rest, nil
		}
		r, err := p.big.done()
		p.big = nil
		if r != nil {
			p.response.resources = append(p.response.resources, r)
		}
		return rest, err
	case p.need > 0:
		if p.part == nil && p.field == responseResources {
			p.borrowed = p.table.buffers.Get().(*[bigSize]byte)
			p.part = p.borrowed[:0]
		}
		p.part = append(p.part, part...)
		return rest, nil
	case len(p.part) > 0:
		p.part = append(p.part, part...)
		part = p.part
	}
	err := p.take(part)
	p.release()
	return rest, err
}

// release gives back the memory of the field.
func (p *parser) release() {
	if p.borrowed != nil {
		p.table.buffers.Put(p.borrowed)
	}
	p.part, p.borrowed = nil, nil
}

// take processes a complete field.
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
		if p.form.delta {
			r.removed = append(r.removed, string(b))
		}
	case responseResources:
		resource, err := p.table.resource(b, p.form)
		if err != nil {
			return err
		}
		if resource != nil {
			r.resources = append(r.resources, resource)
		}
	}
	return nil
}

// reset prepares for the next response.
func (p *parser) reset() {
	kept := p.response.resources
	if cap(kept) > keptResources {
		kept = nil
	}
	clear(kept)
	p.response = Response{resources: kept[:0]}
}

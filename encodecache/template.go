package encodecache

import (
	"bytes"
	"crypto/sha256"
	"iter"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Template is a sequence of encoded protobuf fields with placeholders, for resources that differ only in a few texts,
// such as names deep inside. Each resource then stores only its texts. Filling them in also computes the lengths of all
// enclosing messages, and gives the same bytes as encoding the message would. Immutable.
type Template struct {
	cuts []cut
	uses []int // which texts fill its placeholders, in order
	sum  Sum
}

// cut is a sequence of bytes that ends with the tag of a length-delimited field, and the content of that field. The
// length is written between the two when the texts are known.
type cut struct {
	raw   []byte
	inner []cut // the content of the field; nil if the field is a placeholder
	text  int   // index of the text that fills the placeholder; noText if no field follows the bytes
}

const noText = -1

// Step goes from a message to those of its fields that have a given number.
type Step struct {
	Field int
	// Any is the type URL that the message, an Any, must have; empty for other messages.
	Any string
}

// Placeholder is a place for a text: filling replaces the content of the fields at the end of Path.
type Placeholder struct {
	Path []Step
	Text int
}

// NewTemplate returns a Template of encoded fields. It has a placeholder wherever b has a field at its path. The caller
// must not write b again.
func NewTemplate(b []byte, placeholders []Placeholder) *Template {
	h := sha256.Sum256(b)
	s := &Template{cuts: cutAt(b, placeholders), sum: Sum(h[:16])}
	s.uses = slices.Compact(slices.Sorted(textsOf(s.cuts)))
	return s
}

// Empty reports whether the Template has no placeholder and no bytes.
func (s *Template) Empty() bool { return len(s.cuts) == 1 && len(s.cuts[0].raw) == 0 }

// textsOf yields the indexes of the texts in cuts.
func textsOf(cuts []cut) iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, c := range cuts {
			for t := range textsOf(c.inner) {
				if !yield(t) {
					return
				}
			}
			if c.text != noText && !yield(c.text) {
				return
			}
		}
	}
}

// cutAt splits a message at its placeholders.
func cutAt(b []byte, placeholders []Placeholder) (out []cut) {
	from := 0 // the start of the bytes that are in no cut yet
	for at := 0; at < len(b); {
		num, typ, n := protowire.ConsumeTag(b[at:])
		m := protowire.ConsumeFieldValue(num, typ, b[at+n:])
		if n < 0 || m < 0 {
			panic("encodecache: template: not an encoded message")
		}
		if typ == protowire.BytesType {
			content, _ := protowire.ConsumeBytes(b[at+n:])
			if c, ok := cutField(content, behind(b, placeholders, int(num))); ok {
				c.raw = b[from : at+n]
				out, from = append(out, c), at+n+m
			}
		}
		at += n + m
	}
	return append(out, cut{raw: b[from:], text: noText})
}

// cutField splits the content of a field at the placeholders in it; false if there are none.
func cutField(content []byte, placeholders []Placeholder) (c cut, ok bool) {
	for _, h := range placeholders {
		if len(h.Path) == 0 {
			return cut{text: h.Text}, true
		}
	}
	if len(placeholders) == 0 {
		return cut{}, false
	}
	inner := cutAt(content, placeholders)
	return cut{inner: inner, text: noText}, len(inner) > 1
}

// behind returns those placeholders that are inside fields num of message b, with the rest of their paths.
func behind(b []byte, placeholders []Placeholder, num int) (out []Placeholder) {
	for _, h := range placeholders {
		if s := h.Path[0]; s.Field == num && (s.Any == "" || bytes.HasPrefix(b, anyHead(s.Any))) {
			out = append(out, Placeholder{h.Path[1:], h.Text})
		}
	}
	return out
}

// anyHead returns the bytes at the beginning of an Any of a type.
func anyHead(typeURL string) []byte {
	return append(appendVarint([]byte{anyTypeURL<<3 | 2}, uint64(len(typeURL))), typeURL...)
}

// Fill returns a new Fragment with these texts in the placeholders. key becomes its Origin; it may be nil.
func (s *Template) Fill(texts []string, key any) *Fragment {
	return &Fragment{bytes: fill(make([]byte, 0, filled(s.cuts, texts)), s.cuts, texts), sum: s.Sum(texts),
		from: origin{key}}
}

// Len returns the number of bytes with these texts.
func (s *Template) Len(texts []string) int { return filled(s.cuts, texts) }

// Sum returns a hash of the content with these texts, computed from the template's bytes and the texts.
func (s *Template) Sum(texts []string) Sum {
	b := slices.Clone(s.sum[:])
	for _, i := range s.uses {
		t := texts[i]
		b = append(appendVarint(b, uint64(len(t))), t...)
	}
	h := sha256.Sum256(b)
	return Sum(h[:16])
}

func (c *cut) len(texts []string) int {
	if c.inner != nil {
		return filled(c.inner, texts)
	}
	return len(texts[c.text])
}

func (c *cut) last() bool { return c.inner == nil && c.text == noText }

func filled(cuts []cut, texts []string) (n int) {
	for i := range cuts {
		c := &cuts[i]
		n += len(c.raw)
		if !c.last() {
			n += sizeField(c.len(texts)) - 1 // raw already contains the tag
		}
	}
	return n
}

func fill(b []byte, cuts []cut, texts []string) []byte {
	for i := range cuts {
		c := &cuts[i]
		b = append(b, c.raw...)
		if c.last() {
			continue
		}
		b = appendVarint(b, uint64(c.len(texts)))
		if c.inner != nil {
			b = fill(b, c.inner, texts)
		} else {
			b = append(b, texts[c.text]...)
		}
	}
	return b
}

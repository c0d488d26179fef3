package chunked

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"
)

// Measure is what the items of a Map come to: the sum of their digests and of their weights. It is a function of the
// content alone, and what an edit does to it costs what the edit changes.
type Measure struct {
	Sum    Sum
	Weight int
}

// known is a Measure that is worked out once. Its zero value is unknown.
type known struct {
	of    Measure
	state atomic.Uint32
}

// The states of a known.
const (
	unknown uint32 = iota
	noting         // by one goroutine; others do without meanwhile
	noted
)

// load returns the Measure, if it is known.
func (k *known) load() (m Measure, ok bool) {
	if k.state.Load() == noted {
		return k.of, true
	}
	return Measure{}, false
}

// note keeps a Measure, which is the same whoever works it out.
func (k *known) note(m Measure) {
	if k.state.CompareAndSwap(unknown, noting) {
		k.of = m
		k.state.Store(noted)
	}
}

// take notes what o is, if that is known.
func (k *known) take(o *known) {
	if m, ok := o.load(); ok {
		k.note(m)
	}
}

// replaced notes what total is once a part of it, old, is replaced by now, if all three are known.
func (k *known) replaced(total, old, now *known) {
	t, ok := total.load()
	if !ok {
		return
	}
	o, ok := old.load()
	if !ok {
		return
	}
	if n, ok := now.load(); ok {
		k.note(t.minus(o).Plus(n))
	}
}

// Measure returns what the items of m come to. Each chunk, block, group and Map is measured once in its life, so one
// Map type must always be measured by the same function.
func (m Map[V]) Measure(item func(key string, v V) Measure) Measure {
	if m.root == nil {
		return Measure{}
	}
	total, ok := m.root.measure.load()
	if !ok {
		for _, g := range m.root.groups {
			total = total.Plus(g.measured(item))
		}
		m.root.measure.note(total)
	}
	return total
}

func (g *group[V]) measured(item func(string, V) Measure) Measure {
	if g.blocks == nil {
		return g.block.measured(item)
	}
	total, ok := g.measure.load()
	if !ok {
		for _, b := range g.blocks {
			total = total.Plus(b.measured(item))
		}
		g.measure.note(total)
	}
	return total
}

func (b *block[V]) measured(item func(string, V) Measure) Measure {
	if len(b.chunks) == 1 {
		return b.chunks[0].measured(item)
	}
	total, ok := b.measure.load()
	if !ok {
		for _, c := range b.chunks {
			total = total.Plus(c.measured(item))
		}
		b.measure.note(total)
	}
	return total
}

func (c *Chunk[V]) measured(item func(string, V) Measure) Measure {
	total, ok := c.measure.load()
	if !ok {
		for i, k := range c.keys.list {
			total = total.Plus(item(k, c.values[i]))
		}
		c.measure.note(total)
	}
	return total
}

// Plus returns the measure of a and b together.
func (a Measure) Plus(b Measure) Measure {
	return Measure{a.Sum.combine(b.Sum, bits.Add64), a.Weight + b.Weight}
}

func (a Measure) minus(b Measure) Measure {
	return Measure{a.Sum.combine(b.Sum, bits.Sub64), a.Weight - b.Weight}
}

// combine adds or subtracts numbers of 128 bits.
func (s Sum) combine(o Sum, op func(a, b, carry uint64) (uint64, uint64)) (out Sum) {
	low, carry := op(binary.LittleEndian.Uint64(s[:8]), binary.LittleEndian.Uint64(o[:8]), 0)
	high, _ := op(binary.LittleEndian.Uint64(s[8:]), binary.LittleEndian.Uint64(o[8:]), carry)
	binary.LittleEndian.PutUint64(out[:8], low)
	binary.LittleEndian.PutUint64(out[8:], high)
	return out
}

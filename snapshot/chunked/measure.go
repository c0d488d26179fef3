package chunked

import (
	"encoding/binary"
	"math/bits"
)

// Measure is what the items of a Map come to: the sum of their digests and of their weights. It is a function of the
// content alone, and what an edit does to it costs what the edit changes.
type Measure struct {
	Sum    Sum
	Weight int
}

// Measure returns what the items of m come to. Each chunk and each group is measured once in its life, so one Map type
// must always be measured by the same function, and is not digested by another one.
func (m Map[V]) Measure(item func(key string, v V) Measure) Measure {
	var total Measure
	for _, g := range m.groups() {
		total = total.Plus(g.measured(item))
	}
	return total
}

func (g *group[V]) measured(item func(string, V) Measure) Measure {
	if known := g.measure.Load(); known != nil {
		return *known
	}
	var total Measure
	for _, c := range g.chunks {
		total = total.Plus(c.measured(item))
	}
	g.measure.Store(&total)
	return total
}

func (c *Chunk[V]) measured(item func(string, V) Measure) Measure {
	if known := c.measure.Load(); known != nil {
		return *known
	}
	var total Measure
	for _, it := range c.items {
		total = total.Plus(item(it.Key, it.Value))
	}
	c.measure.Store(&total)
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

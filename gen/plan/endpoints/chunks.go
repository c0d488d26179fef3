package endpoints

import (
	"slices"
	"strings"
	"sync"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// encoded is the encoded endpoints of one Selection. It remembers those of the set that was asked for last, so that the
// next set encodes only the chunks that differ. Safe for concurrent use.
type encoded struct {
	// Immutable.
	Selection
	filter gen.EndpointFilter
	order  gen.Ordering // the labels alone

	mu sync.Mutex
	// Guarded by mu.
	last *encodedSet
}

// encodedSet is one set of endpoints, encoded: the set cut into chunks, and the parts of these joined to groups.
// Immutable.
type encodedSet struct {
	set    *snapshot.EndpointSet
	chunks []chunk
	groups []*group
}

// chunk is some 64 neighbours of a set, encoded.
type chunk struct {
	// endpoints is a part of the set's own list, so that chunks do not keep lists that are gone.
	endpoints []*value.Endpoint
	// whole tells that its own content ends the chunk, and not the end of the set.
	whole bool
	parts []part
}

// part is the endpoints of a chunk that belong to one group.
type part struct {
	key      groupKey
	weight   uint32
	fragment *encodecache.Fragment
}

// groupKey is what the endpoints of a group have in common: their locality, and how well their labels match the order.
type groupKey struct {
	value.Locality
	score int
}

// group is the endpoints of one groupKey.
type group struct {
	gen.LocalityGroup
	fragments []*encodecache.Fragment
}

func newEncoded(k Selection) *encoded {
	return &encoded{
		Selection: k, order: gen.Ordering{Labels: k.Labels},
		filter: gen.EndpointFilter{Port: k.Port, Subset: labelsOf(k.Subset), Local: k.Local, Node: k.Node,
			Draining: k.Draining},
	}
}

// labelsOf returns the inverse of value.LabelsKey.
func labelsOf(key string) value.Labels {
	if key == "" {
		return nil
	}
	out := value.Labels{}
	for l := range strings.SplitSeq(key, ",") {
		k, v, _ := strings.Cut(l, "=")
		out[k] = v
	}
	return out
}

// at encodes a set of endpoints.
func (e *encoded) at(set *snapshot.EndpointSet) *encodedSet {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.last != nil && e.last.set == set {
		return e.last
	}
	next := &encodedSet{set: set}
	if set != nil && !e.None {
		next.chunks = e.cut(set.Endpoints)
	}
	next.groups = groupsOf(next.chunks)
	e.last = next
	return next
}

// Lengths of chunks: one endpoint in chunkMean ends a chunk, and none is much longer than chunkMost.
const (
	chunkMean = 64
	chunkMost = 256
)

// cut divides endpoints into chunks and encodes those that the last set has not. Where a chunk ends depends on its
// endpoints alone, so a change leaves the others as they are.
func (e *encoded) cut(endpoints []*value.Endpoint) []chunk {
	known := map[*value.Endpoint]*chunk{}
	if e.last != nil {
		for i := range e.last.chunks {
			c := &e.last.chunks[i]
			known[c.endpoints[0]] = c
		}
	}
	enc := gen.EndpointEncoder{Form: e.Form}
	var out []chunk
	for rest := endpoints; len(rest) > 0; {
		next := chunk{}
		if c := known[rest[0]]; c != nil && c.begins(rest) {
			next = chunk{rest[:len(c.endpoints):len(c.endpoints)], c.whole, c.parts}
		} else {
			n := chunkEnd(rest)
			next = chunk{rest[:n:n], n < len(rest), e.encode(rest[:n], &enc)}
		}
		out, rest = append(out, next), rest[len(next.endpoints):]
	}
	return out
}

// begins reports whether c is the first chunk of endpoints.
func (c *chunk) begins(endpoints []*value.Endpoint) bool {
	n := len(c.endpoints)
	return n <= len(endpoints) && slices.Equal(c.endpoints, endpoints[:n]) &&
		(n == len(endpoints) || c.whole && !sameAddress(endpoints[n-1], endpoints[n]))
}

// chunkEnd returns the length of the first chunk of endpoints. Those of one address stay together.
func chunkEnd(endpoints []*value.Endpoint) int {
	for n := 1; n < len(endpoints); n++ {
		if !sameAddress(endpoints[n-1], endpoints[n]) && (n >= chunkMost || endsChunk(addressOf(endpoints[n-1]))) {
			return n
		}
	}
	return len(endpoints)
}

func addressOf(e *value.Endpoint) string {
	if len(e.Addresses) == 0 {
		return ""
	}
	return e.Addresses[0]
}

func sameAddress(a, b *value.Endpoint) bool { return addressOf(a) == addressOf(b) }

// endsChunk reports whether the endpoint at that address is the last of its chunk, by FNV-1a with its high bits mixed
// down.
func endsChunk(address string) bool {
	h := uint64(14695981039346656037)
	for i := 0; i < len(address); i++ {
		h = (h ^ uint64(address[i])) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	return (h>>33)%chunkMean == 0
}

// encode returns the endpoints of a chunk that the filter lets through, by group, in the set's order.
func (e *encoded) encode(endpoints []*value.Endpoint, enc *gen.EndpointEncoder) (parts []part) {
	var keys [][]gen.EndpointKey // of each part
	for i, endpoint := range endpoints {
		port, ok := e.filter.Select(endpoint)
		if !ok || e.Once && i > 0 && sameAddress(endpoints[i-1], endpoint) {
			continue
		}
		at := groupKey{endpoint.Locality, e.order.Score(endpoint)}
		p := slices.IndexFunc(parts, func(p part) bool { return p.key == at })
		if p < 0 {
			p, parts, keys = len(parts), append(parts, part{key: at}), append(keys, nil)
		}
		keys[p] = append(keys[p], gen.EndpointKey{Endpoint: endpoint, Port: port})
		parts[p].weight = gen.AddWeight(parts[p].weight, max(1, endpoint.Weight))
	}
	for i := range parts {
		parts[i].fragment = encodecache.NewFragmentFrom(enc.Encode(keys[i]), e)
	}
	return parts
}

// groupsOf joins the parts of chunks to groups, by locality and score.
func groupsOf(chunks []chunk) (out []*group) {
	groups := map[groupKey]*group{}
	for _, c := range chunks {
		for _, p := range c.parts {
			g := groups[p.key]
			if g == nil {
				g = &group{LocalityGroup: gen.LocalityGroup{Locality: p.key.Locality, Score: p.key.score}}
				groups[p.key] = g
				out = append(out, g)
			}
			g.fragments = append(g.fragments, p.fragment)
			g.Weight = gen.AddWeight(g.Weight, p.weight)
		}
	}
	slices.SortFunc(out, func(a, b *group) int { return a.Compare(b.LocalityGroup) })
	return out
}

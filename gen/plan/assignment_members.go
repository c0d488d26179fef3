package plan

import (
	"slices"
	"strings"
	"sync"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// memberKey says which endpoints an assignment has and how they are written, whatever their order: what assignments of
// one service for clients in several places have in common.
type memberKey struct {
	service value.ServiceKey
	defined value.ObjectKey // the object that defines the service
	port    string          // name of the service port
	subset  string          // value.LabelsKey
	// local: only endpoints on node.
	local bool
	node  string
	// draining: endpoints too that only keep their sessions.
	draining bool
	form     gen.EndpointForm
	// labels are those of a gen.Ordering: they split the endpoints of a locality.
	labels string
	// once: an address that comes twice is listed once.
	once bool
	// none: the cluster has its endpoints in itself.
	none bool
}

// members are the encoded endpoints of one memberKey. They remember those of the set that was asked for last, so that
// the next set encodes only the chunks that differ.
type members struct {
	// Immutable.
	memberKey
	filter gen.EndpointFilter
	order  gen.Ordering // the labels alone

	mu sync.Mutex
	// Guarded by mu.
	last *memberSet
}

// memberSet is the members in one set of endpoints: the set cut into chunks, and their parts joined to groups.
// Immutable.
type memberSet struct {
	set    *snapshot.EndpointSet
	chunks []memberChunk
	groups []*memberGroup
}

// memberChunk is some 64 neighbours of a set, encoded.
type memberChunk struct {
	// endpoints is a part of the set's own list, so that chunks do not keep lists that are gone.
	endpoints []*value.Endpoint
	// whole: it ends by its own content, not with the set.
	whole bool
	parts []memberPart
}

// memberPart is the endpoints of a chunk that are in one place.
type memberPart struct {
	place    memberPlace
	weight   uint32
	fragment *encodecache.Fragment
}

// memberPlace is what the endpoints of a group have in common.
type memberPlace struct {
	value.Locality
	score int
}

// memberGroup is the endpoints of one place.
type memberGroup struct {
	gen.LocalityGroup
	fragments []*encodecache.Fragment
}

// Part is empty: endpoints come and go, and with them how they are cut into parts.
func (k memberKey) Part() string { return "" }

// Objects are what defines the service.
func (k memberKey) Objects() []value.ObjectKey { return []value.ObjectKey{k.defined} }

func newMembers(k memberKey) *members {
	return &members{
		memberKey: k, order: gen.Ordering{Labels: k.labels},
		filter: gen.EndpointFilter{Port: k.port, Subset: labelsOf(k.subset), Local: k.local, Node: k.node,
			Draining: k.draining},
	}
}

// labelsOf is the inverse of value.LabelsKey.
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

// at is the members in a set of endpoints.
func (m *members) at(set *snapshot.EndpointSet) *memberSet {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last != nil && m.last.set == set {
		return m.last
	}
	next := &memberSet{set: set}
	if set != nil && !m.none {
		next.chunks = m.cut(set.Endpoints)
	}
	next.groups = groupsOf(next.chunks)
	m.last = next
	return next
}

// Lengths of chunks: one endpoint in chunkMean ends a chunk, and none is much longer than chunkMost.
const (
	chunkMean = 64
	chunkMost = 256
)

// cut divides endpoints into chunks and encodes those that the last set has not. Where a chunk ends depends on its
// endpoints alone, so a change leaves the others as they are.
func (m *members) cut(endpoints []*value.Endpoint) []memberChunk {
	known := map[*value.Endpoint]*memberChunk{}
	if m.last != nil {
		for i := range m.last.chunks {
			c := &m.last.chunks[i]
			known[c.endpoints[0]] = c
		}
	}
	enc := gen.EndpointEncoder{Form: m.form}
	var out []memberChunk
	for rest := endpoints; len(rest) > 0; {
		next := memberChunk{}
		if c := known[rest[0]]; c != nil && c.begins(rest) {
			next = memberChunk{rest[:len(c.endpoints):len(c.endpoints)], c.whole, c.parts}
		} else {
			n := chunkEnd(rest)
			next = memberChunk{rest[:n:n], n < len(rest), m.encode(rest[:n], &enc)}
		}
		out, rest = append(out, next), rest[len(next.endpoints):]
	}
	return out
}

// begins reports whether c is the first chunk of endpoints.
func (c *memberChunk) begins(endpoints []*value.Endpoint) bool {
	n := len(c.endpoints)
	return n <= len(endpoints) && slices.Equal(c.endpoints, endpoints[:n]) &&
		(n == len(endpoints) || c.whole && !sameAddress(endpoints[n-1], endpoints[n]))
}

// chunkEnd is the length of the first chunk of endpoints. Those of one address stay together.
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

// encode is the endpoints of a chunk that the filter lets through, by place, in the set's order.
func (m *members) encode(endpoints []*value.Endpoint, enc *gen.EndpointEncoder) (parts []memberPart) {
	var keys [][]gen.EndpointKey // of each part
	for i, e := range endpoints {
		port, ok := m.filter.Select(e)
		if !ok || m.once && i > 0 && sameAddress(endpoints[i-1], e) {
			continue
		}
		at := memberPlace{e.Locality, m.order.Score(e)}
		p := slices.IndexFunc(parts, func(p memberPart) bool { return p.place == at })
		if p < 0 {
			p, parts, keys = len(parts), append(parts, memberPart{place: at}), append(keys, nil)
		}
		keys[p] = append(keys[p], gen.EndpointKey{Endpoint: e, Port: port})
		parts[p].weight = gen.AddWeight(parts[p].weight, max(1, e.Weight))
	}
	for i := range parts {
		parts[i].fragment = encodecache.NewFragmentFrom(enc.Encode(keys[i]), m)
	}
	return parts
}

// groupsOf joins the parts of chunks to groups, by locality and score.
func groupsOf(chunks []memberChunk) (out []*memberGroup) {
	groups := map[memberPlace]*memberGroup{}
	for _, c := range chunks {
		for _, p := range c.parts {
			g := groups[p.place]
			if g == nil {
				g = &memberGroup{LocalityGroup: gen.LocalityGroup{Locality: p.place.Locality, Score: p.place.score}}
				groups[p.place] = g
				out = append(out, g)
			}
			g.fragments = append(g.fragments, p.fragment)
			g.Weight = gen.AddWeight(g.Weight, p.weight)
		}
	}
	slices.SortFunc(out, func(a, b *memberGroup) int { return a.Compare(b.LocalityGroup) })
	return out
}

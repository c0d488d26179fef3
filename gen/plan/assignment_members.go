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

// memberKey says which endpoints an assignment has and how they are written, whatever their order: what assignments of one service for
// clients in several places have in common.
type memberKey struct {
	service value.ServiceKey
	port    string // name of the service port
	subset  string // value.LabelsKey
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

// members are the encoded endpoints of one memberKey. They remember those of the set that was asked for last, so that the next set encodes
// only the chunks that differ.
type members struct {
	// Immutable.
	memberKey
	filter gen.EndpointFilter

	mu sync.Mutex
	// Guarded by mu.
	last *memberSet
}

// memberSet is the endpoints of one set, by group. Immutable.
type memberSet struct {
	set    *snapshot.EndpointSet
	groups []*memberGroup
}

// memberGroup is the endpoints of one locality and score.
type memberGroup struct {
	gen.LocalityGroup
	endpoints []gen.EndpointKey
	chunks    []*endpointChunk
}

// endpointChunk is some 64 endpoints, encoded.
type endpointChunk struct {
	endpoints []gen.EndpointKey
	fragment  *encodecache.Fragment
}

func newMembers(k memberKey) *members {
	return &members{memberKey: k, filter: gen.EndpointFilter{Port: k.port, Subset: labelsOf(k.subset), Local: k.local, Node: k.node, Draining: k.draining}}
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
	next := &memberSet{set: set, groups: m.group(set)}
	known := m.last.chunks()
	enc := gen.EndpointEncoder{Form: m.form}
	for _, g := range next.groups {
		g.cut(known, &enc)
	}
	m.last = next
	return next
}

// chunks are those of the set by their first endpoints.
func (s *memberSet) chunks() map[gen.EndpointKey]*endpointChunk {
	out := map[gen.EndpointKey]*endpointChunk{}
	if s != nil {
		for _, g := range s.groups {
			for _, c := range g.chunks {
				out[c.endpoints[0]] = c
			}
		}
	}
	return out
}

// group sorts the endpoints that the filter lets through into groups, by locality and score; within one they keep the set's order.
func (m *members) group(set *snapshot.EndpointSet) []*memberGroup {
	if set == nil || m.none {
		return nil
	}
	type place struct {
		value.Locality
		score int
	}
	order := gen.Ordering{Labels: m.labels}
	groups := map[place]*memberGroup{}
	var out []*memberGroup
	seen := map[string]bool{}
	for _, e := range set.Endpoints {
		port, ok := m.filter.Select(e)
		if !ok || m.once && seen[e.Addresses[0]] {
			continue
		}
		if m.once {
			seen[e.Addresses[0]] = true
		}
		at := place{e.Locality, order.Score(e)}
		g := groups[at]
		if g == nil {
			g = &memberGroup{LocalityGroup: gen.LocalityGroup{Locality: at.Locality, Score: at.score}}
			groups[at] = g
			out = append(out, g)
		}
		g.endpoints = append(g.endpoints, gen.EndpointKey{Endpoint: e, Port: port})
		g.Weight = gen.AddWeight(g.Weight, max(1, e.Weight))
	}
	slices.SortFunc(out, func(a, b *memberGroup) int { return a.Compare(b.LocalityGroup) })
	return out
}

// Lengths of chunks: one endpoint in chunkMean ends a chunk, and none is longer than chunkMost.
const (
	chunkMean = 64
	chunkMost = 256
)

// cut divides the endpoints into chunks and encodes those that are not known. Where a chunk ends depends on its endpoints alone, so a change
// leaves the others as they are.
func (g *memberGroup) cut(known map[gen.EndpointKey]*endpointChunk, enc *gen.EndpointEncoder) {
	for rest := g.endpoints; len(rest) > 0; {
		n := 1
		for n < len(rest) && n < chunkMost && !endsChunk(rest[n-1].Endpoint.Addresses[0]) {
			n++
		}
		c := known[rest[0]]
		if c == nil || !slices.Equal(c.endpoints, rest[:n]) {
			c = &endpointChunk{rest[:n:n], encodecache.NewFragment(enc.Encode(rest[:n]))}
		}
		g.chunks, rest = append(g.chunks, c), rest[n:]
	}
	g.endpoints = nil
}

// endsChunk reports whether the endpoint at that address is the last of its chunk, by FNV-1a with its high bits mixed down.
func endsChunk(address string) bool {
	h := uint64(14695981039346656037)
	for i := 0; i < len(address); i++ {
		h = (h ^ uint64(address[i])) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	return (h>>33)%chunkMean == 0
}

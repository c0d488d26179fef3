package inbound

import (
	"slices"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot/value"
)

// servers returns the listeners for gRPC servers of the workload: one for each of its ports at each address that a
// server may bind. A server asks for the one that is named for the address at which it listens.
func (m *maker) servers() (out []*encodecache.Entry) {
	var done []int
	access := m.access()
	access.GRPC, access.RegexSize, access.Policies.Tokens = true, 0, value.Sequence[*value.RequestAuthentication]{}
	if access.Policies.Empty() {
		access = gen.AccessKey{}
	}
	for _, target := range m.facts.Targets {
		if slices.Contains(done, target.Number) {
			continue
		}
		done = append(done, target.Number)
		for _, a := range slices.Concat([]string{"0.0.0.0", "::"}, m.facts.Addresses) {
			out = append(out, m.tables.servers.Get(gen.ServerListenerKey{Address: a, Port: target.Number,
				MutualTLS: m.facts.Peers.At(target.Number) == value.Strict, Access: access}))
		}
	}
	return out
}

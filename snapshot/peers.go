package snapshot

import (
	"slices"

	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
)

// peerIndex is the PeerAuthentications in force by namespace. Policies that are equal keep their pointer.
type peerIndex struct {
	root        string
	mesh        *value.PeerPolicies // of namespaces without policies of their own; nil if nothing says anything
	byNamespace chunked.Map[*value.PeerPolicies]
}

// with returns x after a change that ends at s, whose objects are complete.
func (x peerIndex) with(d *Delta, s *Snapshot) peerIndex {
	root := x.root
	if s.Mesh != nil {
		root = s.Mesh.RootNamespace
	}
	changed := map[string]bool{}
	for k := range Of[*value.PeerAuthentication](d.Objects) {
		changed[k.Namespace] = true
	}
	if root == x.root && len(changed) == 0 {
		return x
	}
	next := peerIndex{root: root, mesh: x.mesh, byNamespace: x.byNamespace}
	if root != x.root || changed[root] {
		// A policy of the root namespace with labels is for nobody.
		whole := slices.DeleteFunc(s.peersIn(root), func(p *value.PeerAuthentication) bool { return len(p.Labels) > 0 })
		next.mesh = kept(x.mesh, nil, whole)
	}
	if root != x.root || next.mesh != x.mesh {
		for p := range All[*value.PeerAuthentication](s) {
			changed[p.Namespace] = true
		}
	}
	changed[x.root] = true // which may be one like others now
	var edits editList[*value.PeerPolicies]
	for namespace := range changed {
		policies := s.peersIn(namespace)
		if len(policies) == 0 || namespace == root {
			edits.remove(namespace)
			continue
		}
		old, _ := x.byNamespace.Get(namespace)
		edits.set(namespace, kept(old, next.mesh, policies), false)
	}
	next.byNamespace = x.byNamespace.Apply(edits)
	return next
}

// peersIn returns the PeerAuthentications of a namespace, the oldest first.
func (s *Snapshot) peersIn(namespace string) []*value.PeerAuthentication {
	return slices.SortedFunc(In[*value.PeerAuthentication](s, namespace), func(a, b *value.PeerAuthentication) int {
		if a.Older(b.Meta) {
			return -1
		}
		return 1
	})
}

// kept joins policies under those of the mesh; it is old where that says the same.
func kept(old, mesh *value.PeerPolicies, policies []*value.PeerAuthentication) *value.PeerPolicies {
	if next := value.NewPeerPolicies(mesh, policies); !next.Equal(old) {
		return next
	}
	return old
}

// PeerPolicies returns the PeerAuthentications in force in a namespace; nil if there are none.
func (s *Snapshot) PeerPolicies(namespace string) *value.PeerPolicies {
	if p, ok := s.peers.byNamespace.Get(namespace); ok {
		return p
	}
	return s.peers.mesh
}

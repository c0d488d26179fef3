package value

// Origin says where a generated part of a resource comes from. The Keys of generators implement it, so that whatever
// was made can be traced to the objects that somebody must change to have it made differently.
type Origin interface {
	// Part is the stable name of the part among those of its resource, such as that of a virtual host: by it an older
	// and a newer version of one part find each other. Of what is a whole resource it is the resource's name; it is
	// empty for parts without a name.
	Part() string
	// Objects are the objects that it was made from: those that say most of it first, the mesh's configuration last.
	// There may be none.
	Objects() []ObjectKey
}

// Object is the object of that kind with this Meta.
func (m Meta) Object(kind Kind) ObjectKey { return ObjectKey{kind, m.Namespace, m.Name} }

// Kind is KindVirtualService, also of nil; so are the others.
func (v *VirtualService) Kind() Kind { return KindVirtualService }

// Object is the key of the VirtualService.
func (v *VirtualService) Object() ObjectKey { return v.Meta.Object(v.Kind()) }

// Objects are the keys of the VirtualService and of those that it delegates to.
func (v *VirtualService) Objects() []ObjectKey {
	return append([]ObjectKey{v.Object()}, v.Delegates...)
}

// Kind is KindGateway.
func (g *Gateway) Kind() Kind { return KindGateway }

// Object is the key of the Gateway.
func (g *Gateway) Object() ObjectKey { return g.Meta.Object(g.Kind()) }

// Kind is KindSidecar.
func (s *Sidecar) Kind() Kind { return KindSidecar }

// Object is the key of the Sidecar object.
func (s *Sidecar) Object() ObjectKey { return s.Meta.Object(s.Kind()) }

// Kind is KindNamespace.
func (n *Namespace) Kind() Kind { return KindNamespace }

// Object is the key of the namespace.
func (n *Namespace) Object() ObjectKey { return ObjectKey{Kind: n.Kind(), Name: n.Name} }

// Kind is KindDestinationRule.
func (d *DestinationRule) Kind() Kind { return KindDestinationRule }

// Object is the key of the object that the rule has its name of.
func (d *DestinationRule) Object() ObjectKey { return d.Meta.Object(d.Kind()) }

// Objects are the keys of all objects that were merged into the rule; none of no rule (nil).
func (d *DestinationRule) Objects() []ObjectKey {
	switch {
	case d == nil:
		return nil
	case len(d.From) == 0:
		return []ObjectKey{d.Object()}
	}
	return d.From
}

// Objects are the keys of all objects that define the service, the first of which decides.
func (s *Service) Objects() []ObjectKey { return append([]ObjectKey{s.Object}, s.Joined...) }

// Object is the key of the mesh's configuration: there is one.
func (m *Mesh) Object() ObjectKey { return ObjectKey{Kind: KindMeshConfig} }

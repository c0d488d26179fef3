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

// Object returns the object of that kind with this Meta.
func (m Meta) Object(kind Kind) ObjectKey {
	return ObjectKey{Cluster: m.Cluster, Kind: kind, Namespace: m.Namespace, Name: m.Name}
}

// Objects returns the keys of all objects that define the service, the first of which decides.
func (s *Service) Objects() []ObjectKey { return append([]ObjectKey{s.Object}, s.Joined...) }

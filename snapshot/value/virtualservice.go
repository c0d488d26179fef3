package value

import "slices"

// KindVirtualService is Istio's VirtualService.
const KindVirtualService Kind = "VirtualService.networking.istio.io"

// VirtualService is a routing object, with the routes of delegates in place of those that name them, and nothing that
// validation refuses.
type VirtualService struct {
	Meta
	Routing
	Export Visibility
	// Delegates are the VirtualServices from which some of the routes come.
	Delegates []ObjectKey
	// RegexSize is the number of instructions of the largest RE2 program of all regular expressions of the object and
	// its Delegates; 0 where they have none. Not all of them need be in Routing.
	RegexSize int
}

// Kind returns KindVirtualService, also of nil.
func (v *VirtualService) Kind() Kind { return KindVirtualService }

// Object returns the key of the VirtualService.
func (v *VirtualService) Object() ObjectKey { return v.Meta.Object(v.Kind()) }

// Objects returns the keys of the VirtualService and of those that it delegates to.
func (v *VirtualService) Objects() []ObjectKey {
	return append([]ObjectKey{v.Object()}, v.Delegates...)
}

// Equal reports whether two VirtualServices are the same.
func (v *VirtualService) Equal(o *VirtualService) bool {
	return v == o || v.Meta == o.Meta && v.Export.Equal(o.Export) && slices.Equal(v.Delegates, o.Delegates) &&
		v.RegexSize == o.RegexSize && v.Routing.Equal(&o.Routing)
}

package value

import (
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
)

// KindSidecar is Istio's Sidecar.
const KindSidecar Kind = "Sidecar.networking.istio.io"

// Sidecar is a Sidecar object. Egress hosts are "namespace/host" as users write them: "." is the namespace of the
// client, for that of the root namespace holds in all.
type Sidecar struct {
	Meta
	Spec *networking.Sidecar
}

// Selector are the labels of the workloads that the Sidecar is for; nil for the whole namespace.
func (s *Sidecar) Selector() Labels { return s.Spec.GetWorkloadSelector().GetLabels() }

// Kind is KindSidecar.
func (s *Sidecar) Kind() Kind { return KindSidecar }

// Object is the key of the Sidecar object.
func (s *Sidecar) Object() ObjectKey { return s.Meta.Object(s.Kind()) }

// Equal reports whether two Sidecar objects are the same.
func (s *Sidecar) Equal(o *Sidecar) bool {
	return s == o || s.Meta == o.Meta && proto.Equal(s.Spec, o.Spec)
}

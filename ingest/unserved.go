package ingest

import (
	"google.golang.org/protobuf/proto"
	clientnet "istio.io/client-go/pkg/apis/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/ingest/support"
	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/snapshot/value"
)

// NotServed is the Object of an Event of a kind that pilotd does not serve (support.Kinds): nothing but its key is
// read. Such an object has no effect but a report.
type NotServed struct{}

// unservedKinds are the kinds that are not served, by their name in keys.
func unservedKinds() map[value.Kind]support.Kind {
	out := map[value.Kind]support.Kind{}
	for _, k := range support.Kinds() {
		out[value.Kind(k.Object())] = k
	}
	return out
}

// unserved is what the object of an Event, which was admitted, sets without effect.
func (s *Store) unserved(e Event) (out []report.Problem) {
	problem := report.Problem{Source: e.Source, Key: e.Key, Where: e.Where, Cause: report.NotServed}
	if k, ok := s.unservedKinds[e.Key.Kind]; ok {
		problem.Reason, problem.Security = "the kind is not served yet: "+k.Reason, k.Security
		return []report.Problem{problem}
	}
	for _, f := range s.findings(e.Object) {
		problem.Field, problem.Reason, problem.Security = f.Field, f.Reason, f.Security
		out = append(out, problem)
	}
	return out
}

func (s *Store) findings(object any) (out []support.Finding) {
	if text, ok := object.(string); ok {
		if read, _, p := readMesh(text); p == nil {
			out = s.support.Unserved(read, "")
		}
		return out
	}
	if m, ok := object.(metav1.Object); ok {
		out = s.support.UnservedMeta(m.GetAnnotations(), m.GetLabels())
	}
	if m := specOf(object); m != nil {
		out = append(out, s.support.Unserved(m, "spec")...)
	}
	return out
}

// specOf is the message in an object of Istio's; nil in others.
func specOf(object any) proto.Message {
	switch o := object.(type) {
	case *clientnet.ServiceEntry:
		return &o.Spec
	case *clientnet.WorkloadEntry:
		return &o.Spec
	case *clientnet.VirtualService:
		return &o.Spec
	case *clientnet.DestinationRule:
		return &o.Spec
	case *clientnet.Gateway:
		return &o.Spec
	case *clientnet.Sidecar:
		return &o.Spec
	}
	return nil
}

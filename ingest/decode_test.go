package ingest

import (
	"fmt"
	"strings"
	"testing"

	clientnet "istio.io/client-go/pkg/apis/networking/v1"
	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pilotd/pilotd/snapshot/value"
)

// blank is an empty object of each kind.
func blank(k value.Kind) metav1.Object {
	switch k {
	case value.KindNamespace:
		return &corev1.Namespace{}
	case value.KindNode:
		return &corev1.Node{}
	case value.KindPod:
		return &corev1.Pod{}
	case value.KindService:
		return &corev1.Service{}
	case value.KindEndpointSlice:
		return &discovery.EndpointSlice{}
	case value.KindServiceEntry:
		return &clientnet.ServiceEntry{}
	case value.KindWorkloadEntry:
		return &clientnet.WorkloadEntry{}
	case value.KindVirtualService:
		return &clientnet.VirtualService{}
	case value.KindDestinationRule:
		return &clientnet.DestinationRule{}
	case value.KindGateway:
		return &clientnet.Gateway{}
	case value.KindSidecar:
		return &clientnet.Sidecar{}
	}
	panic(fmt.Sprintf("no object of kind %q", k))
}

// decode reads documents of YAML as a source's events. A document with "delete: true" deletes; one of kind MeshConfig
// is the rest as text.
func decode(t testing.TB, source, text string) []Event {
	t.Helper()
	var out []Event
	for doc := range strings.SplitSeq("\n"+text, "\n---") {
		var head struct {
			Kind     value.Kind `json:"kind"`
			Metadata struct{ Name, Namespace string }
			Delete   bool `json:"delete"`
		}
		if err := yaml.Unmarshal([]byte(doc), &head); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if head.Kind == "" {
			continue
		}
		e := Event{Source: source, Key: value.ObjectKey{Kind: head.Kind, Namespace: head.Metadata.Namespace,
			Name: head.Metadata.Name}}
		switch {
		case head.Delete:
		case head.Kind == value.KindMeshConfig:
			e.Object = strings.Replace(doc, "kind: MeshConfig", "", 1)
		default:
			o := blank(head.Kind)
			if err := yaml.Unmarshal([]byte(doc), o); err != nil {
				t.Fatalf("%v in\n%s", err, doc)
			}
			e.Object = o
		}
		out = append(out, e)
	}
	return out
}

package ingest

import (
	"testing"

	networking "istio.io/api/networking/v1alpha3"
	clientnet "istio.io/client-go/pkg/apis/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// TestJoinedDefiners: a service that several objects define names all that gave it something, so that whatever is made
// of it can be traced.
func TestJoinedDefiners(t *testing.T) {
	entry := func(name string, port uint32) Event {
		e := &clientnet.ServiceEntry{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec: networking.ServiceEntry{
				Hosts:      []string{"ext.example.com"},
				Ports:      []*networking.ServicePort{{Number: port, Name: "p" + name, Protocol: "TCP"}},
				Resolution: networking.ServiceEntry_DNS,
			}}
		return Event{Source: "kube", Key: value.ObjectKey{Kind: value.KindServiceEntry, Namespace: "shop", Name: name},
			Object: e}
	}
	d := &drain{}
	s := NewStore(d, Settings{Log: testLog(nil)}, "kube")
	s.Apply([]Event{entry("a", 80), entry("b", 81), entry("c", 80)})
	s.Synced("kube")
	svc := d.last.Services[value.ServiceKey{Host: "ext.example.com", Namespace: "shop"}].New
	if len(svc.Objects()) != 2 || svc.Objects()[0].Name != "a" || svc.Objects()[1].Name != "b" {
		t.Fatalf("defined by %v, want a and b: c gives nothing", svc.Objects())
	}
}

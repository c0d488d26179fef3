package ingest

import (
	"testing"

	clientnet "istio.io/client-go/pkg/apis/networking/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// batches are what a Builder was handed.
type batches []*snapshot.Delta

func (b *batches) Apply(next *snapshot.Delta) { *b = append(*b, next) }

// A fault of the Store over one object leaves that as it was; what came with it is handed over all the same, and so is
// what comes later.
func TestAFaultOfTheStoreHurtsOnlyItsObject(t *testing.T) {
	var out batches
	reports := report.New(report.Options{})
	s := NewStore(&out, Settings{Reports: reports}, "kube")
	s.Synced("kube")
	service := func(name string) Event {
		return Event{Source: "kube", Key: value.ObjectKey{Kind: value.KindService, Namespace: "a", Name: name},
			Object: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name},
				Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}}}
	}
	// A rule that was never admitted makes the code that derives values fail, as a bug there would.
	bad := value.ObjectKey{Kind: value.KindGateway, Namespace: "a", Name: "bad"}
	s.joiner.rules[bad] = (*clientnet.Gateway)(nil)
	s.joiner.marks.objects.add(bad)
	s.Apply([]Event{service("one")})
	if got := out[len(out)-1].Services; len(got) != 1 {
		t.Errorf("handed over %v", got)
	}
	standing := func() (n int) {
		for _, p := range reports.All() {
			if p.Cause == report.Panicked && p.Key == bad {
				n++
			}
		}
		return n
	}
	if standing() != 1 {
		t.Errorf("reported %v", reports.All())
	}
	s.Apply([]Event{service("two")})
	if got := out[len(out)-1].Services; len(got) != 1 {
		t.Errorf("afterwards handed over %v", got)
	}
	s.Apply([]Event{{Source: "kube", Key: bad,
		Object: &clientnet.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "bad"}}},
		{Source: "kube", Key: bad}})
	delete(s.joiner.rules, bad)
	s.joiner.marks.objects.add(bad)
	s.Apply(nil)
	if standing() != 0 {
		t.Errorf("reported still: %v", reports.All())
	}
}

// An object whose reading panics is left out, and the others of the same call are not.
func TestAPanicOverAnEventHurtsOnlyItsObject(t *testing.T) {
	var out batches
	s := NewStore(&out, Settings{Metrics: Metrics{Event: func(k value.Kind) {
		if k == value.KindNode {
			panic("a fault")
		}
	}}}, "kube")
	s.Synced("kube")
	namespace := func(name string) Event {
		return Event{Source: "kube", Key: value.ObjectKey{Kind: value.KindNamespace, Name: name},
			Object: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}}
	}
	s.Apply([]Event{namespace("a"), {Source: "kube", Key: value.ObjectKey{Kind: value.KindNode, Name: "n"},
		Object: &corev1.Node{}}, namespace("b")})
	if got := out[len(out)-1].Objects; len(got) != 2 {
		t.Errorf("handed over %v", got)
	}
}

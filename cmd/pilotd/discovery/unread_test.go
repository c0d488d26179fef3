package discovery

import (
	"slices"
	"testing"
	"time"

	networkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pilotd/pilotd/ingest"
)

// rewritten returns an object as its controllers write it over and over: nothing that is used differs. edit may be nil,
// and reports whether it concerns the object.
func rewritten(e ingest.Event, edit func(metav1.Object) bool) (ingest.Event, bool) {
	o, ok := e.Object.(runtime.Object)
	if !ok {
		return e, edit == nil
	}
	e.Object = o.DeepCopyObject()
	return e, edit == nil || edit(e.Object.(metav1.Object))
}

// unreadEdits returns changes of fields that configuration does not depend on.
func unreadEdits() map[string]func(metav1.Object) bool {
	return map[string]func(metav1.Object) bool{
		"the same again": nil,
		"an annotation": func(o metav1.Object) bool {
			o.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}",
				"own/unread": "1"})
			return true
		},
		"managedFields": func(o metav1.Object) bool {
			o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: "Update"}})
			return true
		},
		"resourceVersion and generation": func(o metav1.Object) bool {
			o.SetResourceVersion("1001")
			o.SetGeneration(7)
			return true
		},
		"uid and finalizers": func(o metav1.Object) bool {
			o.SetUID(types.UID("u"))
			o.SetFinalizers([]string{"own/f"})
			return true
		},
		"a label": func(o metav1.Object) bool {
			labels := map[string]string{"own/unread": "1"}
			for k, v := range o.GetLabels() {
				labels[k] = v
			}
			o.SetLabels(labels)
			return true
		},
		"status": func(o metav1.Object) bool { return editStatus(o) },
	}
}

// editStatus changes what status tells beyond what is used of it.
func editStatus(o metav1.Object) bool {
	now := metav1.NewTime(time.Unix(1e9, 0))
	switch o := o.(type) {
	case *corev1.Pod:
		o.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
			LastTransitionTime: now}}
		o.Status.StartTime, o.Status.Message = &now, "still here"
	case *corev1.Node:
		o.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
			LastHeartbeatTime: now}}
	case *corev1.Service:
		o.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.7"}}
	case *networkingv1.VirtualService:
		o.Status.ObservedGeneration = 7
	case *networkingv1.DestinationRule:
		o.Status.ObservedGeneration = 7
	case *networkingv1.ServiceEntry:
		o.Status.ObservedGeneration = 7
	default:
		return false
	}
	return true
}

// everyKindOfProxy connects sidecars of two namespaces and a gateway, of both protocols, and one that is an endpoint
// itself.
func (r *running) everyKindOfProxy() {
	for _, delta := range []bool{false, true} {
		r.connect(workload("shop", 0), delta)
		r.connect(workload("team-b", 0), delta)
		r.connect(router(), delta)
		r.connect(nodeOf(0), delta)
	}
	r.converge()
}

// TestUnreadFieldsPushNothing is the first half of invariant I4: a change that changes no used field is no change.
// Nobody is sent anything, and no View is made but for labels.
func TestUnreadFieldsPushNothing(t *testing.T) {
	objects := sampleMesh()
	inBubble(t, objects, func(t *testing.T, r *running) {
		r.everyKindOfProxy()
		view := r.server.Builder.View()
		sent, _ := r.responsesMade()
		for name, edit := range unreadEdits() {
			for _, e := range objects {
				if e, ok := rewritten(e, edit); ok {
					r.apply(e)
				}
				if now, _ := r.responsesMade(); now != sent {
					t.Errorf("%s of %s: %d responses", name, e.Key, now-sent)
					sent = now
				}
				// whether a label is read, is known further down
				if now := r.server.Builder.View(); now != view && name != "a label" {
					t.Errorf("%s of %s: there is a new View", name, e.Key)
					view = now
				}
				r.apply(e)
				sent, _ = r.responsesMade()
				view = r.server.Builder.View()
			}
		}
	})
}

// TestOneRouteSendsThatRoute is the second half of invariant I4: the edit of one route sends the one route
// configuration that it is in, to those who have it, and nothing else to anybody.
func TestOneRouteSendsThatRoute(t *testing.T) {
	inBubble(t, sampleMesh(), func(t *testing.T, r *running) {
		r.everyKindOfProxy()
		for _, change := range []struct {
			name  string
			event ingest.Event
			want  func(c *client) []string // responses
		}{
			{"a sidecar's route", virtualService("web", "web", hostOf("cart")), func(c *client) []string {
				if c.proxy.ID == router().Id {
					return nil
				}
				return []string{"RDS 80"}
			}},
			{"a gateway's route", gatewayRoute("cart"), func(c *client) []string {
				if c.proxy.ID == router().Id {
					return []string{"RDS http.80"}
				}
				return nil
			}},
			{"a route that nobody may see", hiddenRoute(), func(*client) []string { return nil }},
		} {
			marks := r.marks()
			r.apply(change.event)
			r.converge()
			for _, c := range r.clients {
				var got []string
				for _, x := range c.responses(marks[c.id]) {
					got = append(got, x.String())
				}
				if want := change.want(c); !slices.Equal(got, want) {
					t.Errorf("%s: client %d (%s, delta %v) got %q, want %q", change.name, c.id, c.proxy.ID, c.delta,
						got, want)
				}
			}
		}
		for _, c := range r.clients {
			if wrong := c.complaints(); len(wrong) > 0 {
				t.Errorf("client %d: %v", c.id, wrong)
			}
		}
	})
}

// gatewayRoute sends what comes through the gateway to a service.
func gatewayRoute(to string) ingest.Event {
	e := virtualService("front", "shop.example.com", hostOf(to))
	e.Object.(*networkingv1.VirtualService).Spec.Gateways = []string{"istio-system/front"}
	return e
}

// hiddenRoute returns a route that is exported to a namespace without proxies.
func hiddenRoute() ingest.Event {
	e := virtualService("hidden", "web", hostOf("cart"))
	e.Object.(*networkingv1.VirtualService).Spec.ExportTo = []string{"elsewhere"}
	return e
}

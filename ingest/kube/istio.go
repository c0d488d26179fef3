package kube

import (
	"encoding/json"
	"fmt"
	"strings"

	networking "istio.io/client-go/pkg/apis/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// istioGroup is the API group of Istio's networking kinds.
const istioGroup = "networking.istio.io"

// istioVersions are the versions of the group, the one to prefer first. They differ in name only.
func istioVersions() (out []schema.GroupVersion) {
	for _, v := range []string{"v1", "v1beta1", "v1alpha3"} {
		out = append(out, schema.GroupVersion{Group: istioGroup, Version: v})
	}
	return out
}

// customKinds are the kinds that have CRDs, by the names of these.
func customKinds(s scope) map[string]kind {
	kinds := unservedKinds(s)
	for name, resource := range map[value.Kind]string{
		value.KindServiceEntry:    "serviceentries",
		value.KindWorkloadEntry:   "workloadentries",
		value.KindVirtualService:  "virtualservices",
		value.KindDestinationRule: "destinationrules",
		value.KindGateway:         "gateways",
		value.KindSidecar:         "sidecars",
	} {
		kinds[resource+"."+istioGroup] = kind{
			name: name, resource: resource, versions: istioVersions(), namespace: s.namespace,
			list: func() runtime.Object { return &unreadList{} },
			read: func(o any) (any, *ingest.Rejection) { return readIstio(name, o) },
			need: need{optional: true, excused: s.namespace != "", loss: "objects of this kind have no effect"},
		}
	}
	return kinds
}

// unread is an object of a kind with a CRD whose spec is JSON still: one that does not decode must not stop the list
// that it is in.
type unread struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`
	Spec            json.RawMessage `json:"spec,omitempty"`
	Status          json.RawMessage `json:"status,omitempty"`
}

// DeepCopyObject is what makes it an object to client-go.
func (u *unread) DeepCopyObject() runtime.Object {
	c := *u
	u.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c // The JSON is never written.
}

// unreadList is a list of them.
type unreadList struct {
	meta.TypeMeta `json:",inline"`
	meta.ListMeta `json:"metadata,omitempty"`
	Items         []unread `json:"items"`
}

// DeepCopyObject is what makes it a list to client-go.
func (l *unreadList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = make([]unread, len(l.Items))
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopyObject().(*unread)
	}
	return &c
}

// customCodecs read every kind and version that has a CRD as unread.
func customCodecs() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	for _, k := range customKinds(scope{}) {
		name, _, _ := strings.Cut(string(k.name), ".")
		for _, gv := range k.versions {
			scheme.AddKnownTypeWithName(gv.WithKind(name), &unread{})
			scheme.AddKnownTypeWithName(gv.WithKind(name+"List"), &unreadList{})
			meta.AddToGroupVersion(scheme, gv)
		}
	}
	meta.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme)
}

// readIstio decodes an object of Istio's.
func readIstio(name value.Kind, o any) (any, *ingest.Rejection) {
	u, ok := o.(*unread)
	if !ok {
		return o, nil
	}
	keepMeta(&u.ObjectMeta)
	typed, err := decode(name, u)
	if err != nil {
		return nil, &ingest.Rejection{Field: "spec", Reason: err.Error()}
	}
	return typed, nil
}

func decode(name value.Kind, u *unread) (meta.Object, error) {
	switch name {
	case value.KindServiceEntry:
		// Its status has the addresses that were allocated; one that does not read is no reason to lose the rest.
		o := &networking.ServiceEntry{ObjectMeta: u.ObjectMeta}
		_ = readJSON(u.Status, &o.Status)
		return o, readJSON(u.Spec, &o.Spec)
	case value.KindWorkloadEntry:
		o := &networking.WorkloadEntry{ObjectMeta: u.ObjectMeta}
		return o, readJSON(u.Spec, &o.Spec)
	case value.KindVirtualService:
		o := &networking.VirtualService{ObjectMeta: u.ObjectMeta}
		return o, readJSON(u.Spec, &o.Spec)
	case value.KindDestinationRule:
		o := &networking.DestinationRule{ObjectMeta: u.ObjectMeta}
		return o, readJSON(u.Spec, &o.Spec)
	case value.KindGateway:
		o := &networking.Gateway{ObjectMeta: u.ObjectMeta}
		return o, readJSON(u.Spec, &o.Spec)
	case value.KindSidecar:
		o := &networking.Sidecar{ObjectMeta: u.ObjectMeta}
		return o, readJSON(u.Spec, &o.Spec)
	}
	return nil, fmt.Errorf("kind %s is none of Istio's", name)
}

func readJSON(raw json.RawMessage, into json.Unmarshaler) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return into.UnmarshalJSON(raw)
}

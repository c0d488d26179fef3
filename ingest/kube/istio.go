package kube

import (
	"encoding/json"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/pilotd/pilotd/ingest"
)

// unread is an object of a custom kind whose spec is still JSON. Decoding the spec later keeps an invalid object from
// failing the whole list.
type unread struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`
	Spec            json.RawMessage `json:"spec,omitempty"`
	Status          json.RawMessage `json:"status,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (u *unread) DeepCopyObject() runtime.Object {
	c := *u
	u.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c // the JSON is shared, because nothing writes it
}

// unreadList is a list of unread objects.
type unreadList struct {
	meta.TypeMeta `json:",inline"`
	meta.ListMeta `json:"metadata,omitempty"`
	Items         []unread `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *unreadList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = make([]unread, len(l.Items))
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopyObject().(*unread)
	}
	return &c
}

// customCodecs decode every kind and version that has a CRD as unread.
func customCodecs() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	_, kinds := kindsOf(scope{})
	for _, k := range kinds {
		for _, gv := range k.GroupVersions() {
			scheme.AddKnownTypeWithName(gv.WithKind(k.APIName()), &unread{})
			scheme.AddKnownTypeWithName(gv.WithKind(k.APIName()+"List"), &unreadList{})
			meta.AddToGroupVersion(scheme, gv)
		}
	}
	meta.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme)
}

// decoder returns the kind.read of an Istio kind.
func decoder(k *ingest.Kind) func(any) (any, *ingest.Rejection) {
	return func(o any) (any, *ingest.Rejection) {
		u, ok := o.(*unread)
		if !ok {
			return o, nil
		}
		typed, err := decode(k, u)
		if err != nil {
			return nil, &ingest.Rejection{Field: "spec", Reason: err.Error()}
		}
		return typed, nil
	}
}

// Decode decodes an object of a custom kind in the same way as one from an API server.
func Decode(k *ingest.Kind, text []byte) (ingest.Object, error) {
	u := &unread{}
	if err := json.Unmarshal(text, u); err != nil {
		return nil, err
	}
	return decode(k, u)
}

func decode(k *ingest.Kind, u *unread) (ingest.Object, error) {
	o := k.New()
	if m, ok := o.(meta.ObjectMetaAccessor).GetObjectMeta().(*meta.ObjectMeta); ok {
		*m = u.ObjectMeta
	}
	ingest.KeepMeta(o)
	if k.Status != nil {
		_ = readJSON(u.Status, k.Status(o)) // an invalid status must not lose the spec
	}
	return o, readJSON(u.Spec, k.Spec(o))
}

func readJSON(raw json.RawMessage, into json.Unmarshaler) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return into.UnmarshalJSON(raw)
}

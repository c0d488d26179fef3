package kube

import (
	"encoding/json"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/pilotd/pilotd/ingest"
)

// unread is an object of a kind with a CRD whose spec is JSON still: one that does not decode must not stop the list
// that it is in.
type unread struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`
	Spec            json.RawMessage `json:"spec,omitempty"`
	Status          json.RawMessage `json:"status,omitempty"`
}

// DeepCopyObject returns what makes it an object to client-go.
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

// DeepCopyObject returns what makes it a list to client-go.
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

// decoder returns the read of a kind of Istio's.
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

// Decode reads an object of a kind that has a CRD as it is read from an API server.
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
		_ = readJSON(u.Status, k.Status(o)) // One that does not read is no reason to lose the rest.
	}
	return o, readJSON(u.Spec, k.Spec(o))
}

func readJSON(raw json.RawMessage, into json.Unmarshaler) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return into.UnmarshalJSON(raw)
}

package ingest

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Kind describes one kind of object: everything that pilotd knows about the kind itself. The sources, the Store, the
// pages, the metrics and docs/api-support.md read these descriptions, so adding a kind takes one more of them, a value
// in package value, and the generator that reads the value. Immutable.
type Kind struct {
	// Name is the kind's name and group.
	Name value.Kind
	// Resource is the kind's name in the API, where pilotd uses another name for it.
	Resource string
	// Plural is the name in URLs. Versions are the API versions that pilotd reads, the preferred one first; they differ
	// in name only.
	Plural   string
	Versions []string
	// InNamespaces says that objects of the kind are namespaced.
	InNamespaces bool
	// Builtin says that every API server has the kind. Other kinds need a CRD.
	Builtin bool
	// Selector is a field selector that makes an API server leave out objects that pilotd does not need.
	Selector string
	// Loss says what users lose if the API server lacks the kind; pilotd then starts without it. pilotd waits for a
	// kind whose Loss is empty.
	Loss string
	// Lenient says that unknown fields in files are ignored instead of refused, because programs write objects of this
	// kind and newer versions of them write more fields.
	Lenient bool
	// NotServed says, for a kind that pilotd does not serve, what happens instead. pilotd reads only the names of such
	// objects, and the fields below are empty.
	NotServed string
	// ForInjection says that the injector reads objects of the kind from an API server. NotServed then holds for files
	// only.
	ForInjection bool
	// Security says that not serving the kind may let traffic through that the user means to block.
	Security bool
	// Aside says that objects of the kind become no values and enter no Snapshot: Settings.Aside receives them. Sources
	// of files send them; from API servers the secrets package fetches single ones. The fields below, except New, are
	// empty.
	Aside bool
	// Registry says that the metrics count events of the kind as events of the service registry.
	Registry bool
	// Gauge is the name of the metric with the number of objects; empty for none.
	Gauge string

	// New makes an empty object to decode into. NewList makes an empty list, for a builtin kind.
	New     func() Object
	NewList func() runtime.Object
	// Spec returns the message in an object of an Istio kind; nil for other kinds. Status returns the object's status,
	// where pilotd reads it.
	Spec, Status func(Object) Message
	// Keep clears the fields that pilotd does not use, of an object that the caller has just decoded and owns alone.
	// nil keeps all fields.
	Keep func(Object)

	// strip returns what the Store keeps of an object; nil keeps the whole object. same reports whether two stripped
	// objects are equal in the fields that pilotd uses.
	strip func(*Stripper, any) any
	same  func(before, next any) bool
	// check returns the reason to refuse an object, in the form that the Store keeps; nil if it is good.
	check func(object any, limits limits) *problem
	// instead returns the object that is in force in place of a refused one that has no earlier good version, for kinds
	// where having none would let traffic through that the user means to block. It returns nil for no such object, and
	// may be nil itself.
	instead func(object any) any
	// message returns the part of an object that the table of fields describes, and its path.
	message func(object any) (m proto.Message, path string)
	// put brings an admitted object into force; nil removes it.
	put func(j *joiner, key value.ObjectKey, object any)
	// value returns the value of an object in force, nil if it has none. The function itself is nil for kinds whose
	// objects have no value of their own. equal compares two values.
	value func(j *joiner, key value.ObjectKey) value.Value
	equal func(a, b value.Value) bool
}

// Object is an object of the Kubernetes API.
type Object interface {
	metav1.Object
	runtime.Object
}

// Message is a message of Istio's API, which has its own JSON decoder.
type Message interface {
	proto.Message
	json.Unmarshaler
}

// limits are configured bounds on what objects may contain.
type limits struct {
	// regexSize is the largest allowed RE2 program of a regular expression.
	regexSize int
}

// APIName returns the kind's name in the API: the text in the kind field of its objects.
func (k *Kind) APIName() string {
	if k.Resource != "" {
		return k.Resource
	}
	return k.Name.Name()
}

// GroupVersions returns the group with each of Versions, in their order.
func (k *Kind) GroupVersions() (out []schema.GroupVersion) {
	for _, v := range k.Versions {
		out = append(out, schema.GroupVersion{Group: k.Name.Group(), Version: v})
	}
	return out
}

// CRD returns the name of the kind's custom resource definition.
func (k *Kind) CRD() string { return k.Plural + "." + k.Name.Group() }

// MeshName is the name of the mesh configuration in keys. There is only one.
const MeshName = "mesh"

// Key returns the key of an object of this kind.
func (k *Kind) Key(namespace, name string) value.ObjectKey {
	switch {
	case k.Name == value.KindMeshConfig:
		return value.ObjectKey{Kind: k.Name, Name: MeshName}
	case !k.InNamespaces:
		namespace = ""
	}
	return value.ObjectKey{Kind: k.Name, Namespace: namespace, Name: name}
}

// admit returns the reason to refuse an object, in the form that the Store keeps; nil admits it. It looks at this
// object alone, so whether an object is in force never depends on others.
func (k *Kind) admit(key value.ObjectKey, object any, l limits) *problem {
	if _, ok := object.(NotServed); ok {
		return nil // only the names of such objects are used
	}
	if k == nil {
		return &problem{"kind", fmt.Sprintf("kind %q is not read", key.Kind)}
	}
	if k.InNamespaces && !isLabel(key.Namespace) {
		return &problem{"metadata.namespace", fmt.Sprintf("expected a namespace, got %q", key.Namespace)}
	}
	if k.check == nil {
		return &problem{"kind", fmt.Sprintf("kind %q is not read", key.Kind)}
	}
	return k.check(object, l)
}

// checked makes a Kind.check for objects of type O from check, which may be nil.
func checked[O any](check func(*O) *problem) func(any, limits) *problem {
	return func(object any, _ limits) *problem {
		o, p := typed[O](object)
		if p != nil || check == nil {
			return p
		}
		return check(o)
	}
}

func typed[O any](object any) (*O, *problem) {
	o, ok := object.(*O)
	if !ok || o == nil {
		return nil, &problem{"", fmt.Sprintf("expected %T, got %T", o, object)}
	}
	return o, nil
}

// builtin fills in the description of a kind of Kubernetes.
func builtin[O, L any, PO interface {
	*O
	Object
}, PL interface {
	*L
	runtime.Object
}](k Kind) Kind {
	k.Versions, k.Builtin = []string{"v1"}, true
	k.New = func() Object { return PO(new(O)) }
	k.NewList = func() runtime.Object { return PL(new(L)) }
	return k
}

// custom fills in the description of a kind of Istio. Its versions are those of the networking group, unless k names
// others. spec returns the message in an object, and check refuses bad objects.
func custom[O any, PO interface {
	*O
	Object
}](k Kind, spec func(PO) Message, check func(*O) *problem) Kind {
	if k.InNamespaces = true; k.Versions == nil {
		k.Versions = []string{"v1", "v1beta1", "v1alpha3"}
	}
	k.Loss = "objects of this kind have no effect"
	k.New = func() Object { return PO(new(O)) }
	k.Spec = func(o Object) Message { return spec(o.(PO)) }
	k.check = checked(func(o *O) *problem {
		if p := refuseDryRun(k.Name, PO(o).GetAnnotations()); p != nil || check == nil {
			return p
		}
		return check(o)
	})
	k.message = func(object any) (proto.Message, string) {
		if o, ok := object.(PO); ok {
			return spec(o), "spec"
		}
		return nil, ""
	}
	return k
}

// valued fills in the description of a kind whose objects each become one value: derive makes the value, or returns nil
// if the object has none.
func valued[O, V any, PV interface {
	*V
	value.Value
	Equal(PV) bool
}](k Kind, derive func(*joiner, value.ObjectKey, *O) PV) Kind {
	if k.put == nil {
		k.put = (*joiner).putRule
	}
	k.value = func(j *joiner, key value.ObjectKey) value.Value {
		if o, ok := j.rules[key].(*O); ok {
			if v := derive(j, key, o); v != nil {
				return v
			}
		}
		return nil
	}
	k.equal = equalValues[V, PV]
	return k
}

func equalValues[V any, PV interface {
	*V
	value.Value
	Equal(PV) bool
}](a, b value.Value) bool {
	return a.(PV).Equal(b.(PV))
}

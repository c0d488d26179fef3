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

// Kind describes one kind of object: all that pilotd knows of it as a kind. The sources, the Store, the pages, the
// metrics and docs/api-support.md read the descriptions, so that a new kind is one more of them, its value in package
// value, and the generator that reads the value. Immutable.
type Kind struct {
	// Name is the kind's name and group.
	Name value.Kind
	// Resource is the API's name of the kind where pilotd calls it by another one.
	Resource string
	// Plural is the name in URLs, Versions are those that are read, the one to prefer first. They differ in name only.
	Plural   string
	Versions []string
	// InNamespaces says that objects of the kind are in namespaces.
	InNamespaces bool
	// Builtin says that every API server has the kind. Others have a CRD.
	Builtin bool
	// Selector is the field selector by which an API server leaves out objects that are of no use.
	Selector string
	// Loss says what is lost without the kind, where pilotd serves all the same; it waits for a kind without a Loss.
	Loss string
	// Lenient says that fields that nobody knows are left out of files, not refused: programs write the kind, and newer
	// ones write more fields.
	Lenient bool
	// NotServed says what happens instead, of a kind whose objects are only looked for by name. All that follows is
	// empty of such a kind.
	NotServed string
	// ForInjection says that an API server's objects of the kind are read by who injects pods: NotServed is true of files.
	ForInjection bool
	// Security tells that what happens instead may let traffic through that the user means to stop.
	Security bool
	// Aside says that objects of the kind become no values, and enter no Snapshot: Settings.Aside takes them. Sources of
	// files have them; API servers are asked for single ones by others. What follows, but for New, is empty of such a
	// kind.
	Aside bool
	// Registry says that the metrics count the kind's events among those of the service registry.
	Registry bool
	// Gauge is the metric that counts the objects; none when empty.
	Gauge string

	// New makes an empty object to decode into; NewList an empty list, of a builtin kind.
	New     func() Object
	NewList func() runtime.Object
	// Spec is the message in an object of Istio's; nil for other kinds. Status is the one beside it, where it is read.
	Spec, Status func(Object) Message
	// Keep clears what is not used of an object that was decoded just now and belongs to nobody else; nil keeps all.
	Keep func(Object)

	// strip makes what the Store keeps of an object; nil keeps the object. same reports whether the used fields of two
	// stripped objects are equal.
	strip func(*Stripper, any) any
	same  func(before, next any) bool
	// check says why an object, as the Store keeps it, cannot come into force.
	check func(object any, limits limits) *problem
	// instead is the object that stands for one that check refused while no earlier version of it is in force, where
	// nothing in its place would let traffic through that the user means to stop; nil for none. The function may be nil.
	instead func(object any) any
	// message is what the table of fields speaks of in an object, and the path of that.
	message func(object any) (m proto.Message, path string)
	// put brings an object into force; nil takes it away.
	put func(j *joiner, key value.ObjectKey, object any)
	// value is the value of an object in force, nil if it has none. The function is nil where objects of the kind have
	// no value of their own. equal compares two values.
	value func(j *joiner, key value.ObjectKey) value.Value
	equal func(a, b value.Value) bool
}

// Object is an object as the API has it.
type Object interface {
	metav1.Object
	runtime.Object
}

// Message is a message of Istio's API, with its own way to read JSON.
type Message interface {
	proto.Message
	json.Unmarshaler
}

// limits bound what objects may ask for.
type limits struct {
	// regexSize is the size of the largest RE2 program of a regular expression.
	regexSize int
}

// APIName returns the kind's name in the API: the kind field of its objects.
func (k *Kind) APIName() string {
	if k.Resource != "" {
		return k.Resource
	}
	return k.Name.Name()
}

// GroupVersions returns the versions with the group, in the order of Versions.
func (k *Kind) GroupVersions() (out []schema.GroupVersion) {
	for _, v := range k.Versions {
		out = append(out, schema.GroupVersion{Group: k.Name.Group(), Version: v})
	}
	return out
}

// CRD returns the name of the kind's custom resource definition.
func (k *Kind) CRD() string { return k.Plural + "." + k.Name.Group() }

// MeshName is the name of the mesh configuration in keys: there is one.
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

// admit says why an object, as the Store keeps it, cannot come into force, nil if it can. It looks at the object alone,
// so that whether an object is in force depends on no other.
func (k *Kind) admit(key value.ObjectKey, object any, l limits) *problem {
	if _, ok := object.(NotServed); ok {
		return nil // its source knows the kind, and nothing else of it is used
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

// checked returns a Kind.check that takes objects of type O, and refuses those for which check, if there is one, has a
// reason.
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

// builtin completes the description of a kind of Kubernetes's.
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

// custom completes the description of a kind of Istio's. Its versions are those of the networking group, unless it
// names others. spec is the message in an object, and check looks at an object.
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
	k.check = checked(check)
	k.message = func(object any) (proto.Message, string) {
		if o, ok := object.(PO); ok {
			return spec(o), "spec"
		}
		return nil, ""
	}
	return k
}

// valued completes the description of a kind whose objects become values by themselves: derive makes the value of one,
// nil where it has none.
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

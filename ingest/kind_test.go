package ingest

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/pilotd/pilotd/ingest/support"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestKindsAreWhole walks the descriptions: none lacks what a source, the Store or a page asks of its sort.
func TestKindsAreWhole(t *testing.T) {
	seen := map[value.Kind]bool{}
	for _, k := range Kinds() {
		if seen[k.Name] {
			t.Errorf("%s is there twice", k.Name)
		}
		seen[k.Name] = true
		if k.Plural == "" || k.Plural != strings.ToLower(k.Plural) || len(k.Versions) == 0 {
			t.Errorf("%s is read as %q in %v", k.Name, k.Plural, k.Versions)
		}
		if got := value.KindOf(k.Name.Group(), k.Name.Name()); got != k.Name {
			t.Errorf("%s is put together as %s", k.Name, got)
		}
		if k.Aside {
			if k.New == nil || k.Keep == nil || k.check != nil || k.put != nil || k.NotServed != "" {
				t.Errorf("%s stands aside, and is more than decoded", k.Name)
			}
			continue
		}
		served := k.New != nil && k.check != nil && k.put != nil
		if served == (k.NotServed != "") {
			t.Errorf("%s is served: %v, and what happens instead is %q", k.Name, served, k.NotServed)
		}
		if served && k.Builtin != (k.Spec == nil) {
			t.Errorf("%s is one that every server has: %v, and has no message of Istio's: %v", k.Name, k.Builtin,
				k.Spec == nil)
		}
		if (k.strip == nil) != (k.same == nil) || (k.value == nil) != (k.equal == nil) {
			t.Errorf("%s is stripped but not compared, or the other way round", k.Name)
		}
	}
}

// TestVersionsOfIstioReadTheSame: an object is known by its kind whichever version its text names, the newest first.
func TestVersionsOfIstioReadTheSame(t *testing.T) {
	for _, k := range servedKinds() {
		want := map[string][]string{"networking.istio.io": {"v1", "v1beta1", "v1alpha3"},
			"security.istio.io": {"v1", "v1beta1"}}[k.Name.Group()]
		if k.Builtin || want == nil {
			want = []string{"v1"}
		}
		if !slices.Equal(k.Versions, want) {
			t.Errorf("%s is read in %v, want %v", k.Name, k.Versions, want)
		}
	}
}

// TestAdmissionTakesTheObjectsOfItsKind: what a kind decodes into passes to its check, and nothing of another kind
// does.
func TestAdmissionTakesTheObjectsOfItsKind(t *testing.T) {
	kinds := servedKinds()
	for i := range kinds {
		k := &kinds[i]
		for j := range kinds {
			object := kinds[j].Strip(new(Stripper), kinds[j].New())
			p := k.admit(k.Key("a", "x"), object, limits{})
			if refused := p != nil && strings.HasPrefix(p.reason, "expected *"); k.Name != value.KindMeshConfig &&
				refused != (i != j) {
				t.Errorf("a %s that is given as %s: %v", kinds[j].Name, k.Name, p)
			}
		}
	}
}

// TestKindsAreInTheTableOfFields: of every message that objects of a kind have, the table says what is served.
func TestKindsAreInTheTableOfFields(t *testing.T) {
	sections := map[string]bool{}
	for s := range support.New().Sections() {
		sections[s.Name] = true
	}
	for _, k := range servedKinds() {
		if k.Spec == nil {
			continue
		}
		var m proto.Message = k.Spec(k.New())
		if name := string(m.ProtoReflect().Descriptor().FullName()); !sections[name] {
			t.Errorf("fields.txt says nothing of %s, which is the spec of %s", name, k.Name)
		}
	}
}

// TestValuesNameTheirObjects: what a kind makes of an object carries the object's key, and says of itself that it is of
// the kind.
func TestValuesNameTheirObjects(t *testing.T) {
	k := newKeeper()
	s := NewStore(k, quiet(t), "kube")
	s.Synced("kube")
	s.Apply(decode(t, "kube", `
kind: Namespace
metadata: {name: a}
---
kind: VirtualService
metadata: {name: x, namespace: a}
spec: {hosts: [web], http: [{route: [{destination: {host: web}}]}]}
---
kind: DestinationRule
metadata: {name: x, namespace: a}
spec: {host: web}
---
kind: Gateway
metadata: {name: x, namespace: a}
spec: {servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}
---
kind: Sidecar
metadata: {name: x, namespace: a}
spec: {egress: [{hosts: ["./*"]}]}
---
kind: PeerAuthentication
metadata: {name: x, namespace: a}
spec: {mtls: {mode: STRICT}}
---
kind: AuthorizationPolicy
metadata: {name: x, namespace: a}
spec: {}
---
kind: RequestAuthentication
metadata: {name: x, namespace: a}
spec: {}`))
	for key, v := range k.state.objects {
		if v.Object() != key || v.Kind() != key.Kind {
			t.Errorf("%v has a value of %s that names %v", key, v.Kind(), v.Object())
		}
		zero := reflect.Zero(reflect.TypeOf(v)).Interface().(value.Value)
		if zero.Kind() != key.Kind {
			t.Errorf("no value of type %T is of kind %s", v, zero.Kind())
		}
	}
	for _, d := range servedKinds() {
		if d.value != nil && k.state.objects[d.Key("a", "x")] == nil && d.Name != value.KindNamespace {
			t.Errorf("there is no value of %s: the test lacks an object", d.Name)
		}
	}
}

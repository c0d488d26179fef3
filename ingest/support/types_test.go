package support

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"istio.io/api/annotation"
	"istio.io/api/label"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// roots returns the messages that users write.
func roots() []proto.Message {
	return []proto.Message{
		&networking.VirtualService{}, &networking.DestinationRule{}, &networking.Gateway{}, &networking.ServiceEntry{},
		&networking.WorkloadEntry{}, &networking.Sidecar{}, &security.PeerAuthentication{},
		&security.AuthorizationPolicy{}, &security.RequestAuthentication{},
		&meshconfig.MeshConfig{},
	}
}

// structs returns the objects of Kubernetes's that are read.
func structs() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[corev1.Service](), reflect.TypeFor[discovery.EndpointSlice](), reflect.TypeFor[corev1.Pod](),
		reflect.TypeFor[corev1.Node](), reflect.TypeFor[corev1.Namespace](), reflect.TypeFor[corev1.ConfigMap](),
	}
}

// used are the sections that a type asks for.
type used map[string]bool

// check holds a section against the names that its type has.
func (u used) check(t *testing.T, table *Table, kind, name string, names []string) *Section {
	u[kind+" "+name] = true
	s := table.section(kind, name)
	if s == nil {
		t.Errorf("%s %s is not in fields.txt: it has %s", kind, name, strings.Join(names, ", "))
		return nil
	}
	for _, n := range names {
		if _, ok := s.Entry(n); !ok {
			t.Errorf("%s %s: %s is not in fields.txt", kind, name, n)
		}
	}
	for _, n := range s.Names {
		if n != everything && !slices.Contains(names, n) {
			t.Errorf("%s %s: fields.txt has %s, which does not exist", kind, name, n)
		}
		if e, _ := s.Entry(n); n == everything && e.State != Unused {
			t.Errorf("%s %s: * is for what is unused", kind, name)
		}
	}
	return s
}

func (u used) message(t *testing.T, table *Table, d protoreflect.MessageDescriptor) {
	name := string(d.FullName())
	if u[messageSection+" "+name] || strings.HasPrefix(name, "google.protobuf.") {
		return
	}
	var names []string
	for i := range d.Fields().Len() {
		names = append(names, d.Fields().Get(i).JSONName())
	}
	s := u.check(t, table, messageSection, name, names)
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		if e, _ := s.Entry(f.JSONName()); e.State == Served {
			u.field(t, table, f)
		}
	}
}

// field looks at the type of a field that is served. What is below another one has no say.
func (u used) field(t *testing.T, table *Table, f protoreflect.FieldDescriptor) {
	if f.IsMap() {
		f = f.MapValue()
	}
	if m := f.Message(); m != nil {
		u.message(t, table, m)
	}
	if e := f.Enum(); e != nil {
		var names []string
		for i := range e.Values().Len() {
			names = append(names, string(e.Values().Get(i).Name()))
		}
		u.check(t, table, enumSection, string(e.FullName()), names)
	}
}

func (u used) structure(t *testing.T, table *Table, typ reflect.Type) {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	name := typ.PkgPath() + "." + typ.Name()
	if typ.Kind() != reflect.Struct || !strings.HasPrefix(name, "k8s.io/api/") || u[structSection+" "+name] ||
		valueStruct(typ) {
		return
	}
	fields := map[string]reflect.Type{}
	var names []string
	for i := range typ.NumField() {
		n, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		if n != "" && n != "-" {
			names, fields[n] = append(names, n), typ.Field(i).Type
		}
	}
	s := u.check(t, table, structSection, name, names)
	for _, n := range names {
		if e, _ := s.Entry(n); e.State == Served {
			u.structure(t, table, fields[n])
		}
	}
}

// valueStruct reports whether a struct is used as a whole.
func valueStruct(typ reflect.Type) bool {
	return slices.Contains([]reflect.Type{
		reflect.TypeFor[metav1.ObjectMeta](), reflect.TypeFor[corev1.PodCondition](), reflect.TypeFor[corev1.PodIP](),
		reflect.TypeFor[corev1.ObjectReference](),
	}, typ)
}

// TestEveryFieldIsListed holds fields.txt against the types: what can be set is in it, and what is in it can be set.
func TestEveryFieldIsListed(t *testing.T) {
	table, u := New(), used{}
	for _, m := range roots() {
		u.message(t, table, m.ProtoReflect().Descriptor())
	}
	for _, typ := range structs() {
		u.structure(t, table, typ)
	}
	var annotations, labels []string
	for _, a := range annotation.AllResourceAnnotations() {
		annotations = append(annotations, a.Name)
	}
	for _, l := range label.AllResourceLabels() {
		labels = append(labels, l.Name)
	}
	u.check(t, table, annotationSection, "", annotations)
	u.check(t, table, labelSection, "", labels)
	for s := range table.Sections() {
		if !u[s.Kind+" "+s.Name] {
			t.Errorf("%s %s: nothing that is served has this type", s.Kind, s.Name)
		}
	}
}

// TestMalformed: a table that cannot be read says in which line.
func TestMalformed(t *testing.T) {
	for _, c := range [][2]string{
		{"  name served", "fields.txt:1: "}, {"message A\n  name", "fields.txt:2: "},
		{"message A\n  name maybe", `fields.txt:2: "maybe"`},
		{"message A\n  name served\n  name served", "fields.txt:3: "}, {"message A\n\nmessage A", "fields.txt:3: "},
	} {
		if _, err := parse(c[0]); err == nil || !strings.HasPrefix(err.Error(), c[1]) {
			t.Errorf("%q: %v, want %s", c[0], err, c[1])
		}
	}
}

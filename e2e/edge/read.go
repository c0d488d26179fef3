package edge

import (
	"reflect"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// reader reads Shapes and remembers them, so that a recursive type becomes a cycle. Owned by the goroutine that made
// it.
type reader struct {
	messages map[protoreflect.FullName]*Shape
	types    map[reflect.Type]*Shape
}

func newReader() *reader {
	return &reader{messages: make(map[protoreflect.FullName]*Shape), types: make(map[reflect.Type]*Shape)}
}

// istio returns the shape of an Istio object with that spec. Its status is left out: pilotd reads none.
func (r *reader) istio(spec proto.Message) *Shape {
	return &Shape{Type: "object", Fields: []Field{
		{Name: "metadata", Shape: metadata()},
		{Name: "spec", Shape: r.message(spec.ProtoReflect().Descriptor())},
	}}
}

// metadata has the fields of ObjectMeta that belong to whoever writes the object; the API server owns the others.
func metadata() *Shape {
	texts := &Shape{Form: Map, Elem: &Shape{Form: String}}
	return &Shape{Type: "metadata", Fields: []Field{{Name: "labels", Shape: texts},
		{Name: "annotations", Shape: texts}}}
}

// message reads a protobuf message.
func (r *reader) message(d protoreflect.MessageDescriptor) *Shape {
	if s := wellKnown(d.FullName()); s != nil {
		return s
	}
	if s := r.messages[d.FullName()]; s != nil {
		return s
	}
	s := &Shape{Type: string(d.FullName())}
	r.messages[d.FullName()] = s
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		field := Field{Name: f.JSONName(), Shape: r.protoField(f)}
		if o := f.ContainingOneof(); o != nil && !o.IsSynthetic() {
			field.OneOf = string(o.Name())
		}
		s.Fields = append(s.Fields, field)
	}
	return s
}

func (r *reader) protoField(f protoreflect.FieldDescriptor) *Shape {
	switch {
	case f.IsMap():
		return &Shape{Form: Map, Elem: r.protoValue(f.MapValue())}
	case f.IsList():
		return &Shape{Form: List, Elem: r.protoValue(f)}
	}
	return r.protoValue(f)
}

func (r *reader) protoValue(f protoreflect.FieldDescriptor) *Shape {
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return r.message(f.Message())
	case protoreflect.EnumKind:
		s := &Shape{Form: Enum}
		for i := range f.Enum().Values().Len() {
			s.Names = append(s.Names, string(f.Enum().Values().Get(i).Name()))
		}
		return s
	case protoreflect.BoolKind:
		return &Shape{Form: Bool}
	case protoreflect.StringKind:
		return &Shape{Form: String}
	case protoreflect.BytesKind:
		return &Shape{Form: Bytes}
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return &Shape{Form: Float}
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return &Shape{Form: Integer, Unsigned: true}
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return &Shape{Form: Integer, Unsigned: true, Wide: true}
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return &Shape{Form: Integer, Wide: true}
	}
	return &Shape{Form: Integer}
}

// wellKnown returns the shape of a message that has a JSON form of its own, nil for any other.
func wellKnown(name protoreflect.FullName) *Shape {
	switch name {
	case "google.protobuf.Duration":
		return &Shape{Form: Duration}
	case "google.protobuf.Timestamp":
		return &Shape{Form: Timestamp}
	case "google.protobuf.BoolValue":
		return &Shape{Form: Bool}
	case "google.protobuf.StringValue":
		return &Shape{Form: String}
	case "google.protobuf.DoubleValue", "google.protobuf.FloatValue":
		return &Shape{Form: Float}
	case "google.protobuf.UInt32Value":
		return &Shape{Form: Integer, Unsigned: true}
	case "google.protobuf.UInt64Value":
		return &Shape{Form: Integer, Unsigned: true, Wide: true}
	case "google.protobuf.Int32Value":
		return &Shape{Form: Integer}
	case "google.protobuf.Int64Value":
		return &Shape{Form: Integer, Wide: true}
	case "google.protobuf.Any", "google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue":
		return &Shape{Form: Anything}
	}
	return nil
}

// kubernetes returns the shape of a Kubernetes object; o points to an empty one.
func (r *reader) kubernetes(o any) *Shape {
	s := r.structure(reflect.TypeOf(o).Elem())
	fields := []Field{{Name: "metadata", Shape: metadata()}}
	for _, f := range s.Fields {
		if f.Name != "metadata" && f.Name != "kind" && f.Name != "apiVersion" {
			fields = append(fields, f)
		}
	}
	return &Shape{Type: s.Type, Fields: fields}
}

func (r *reader) structure(t reflect.Type) *Shape {
	if s := r.types[t]; s != nil {
		return s
	}
	s := &Shape{Type: t.String()}
	r.types[t] = s
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case strings.Contains(options, "inline") || f.Anonymous && name == "":
			inner := f.Type
			for inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			s.Fields = append(s.Fields, r.structure(inner).Fields...)
		default:
			s.Fields = append(s.Fields, Field{Name: name, Shape: r.goValue(f.Type)})
		}
	}
	return s
}

func (r *reader) goValue(t reflect.Type) *Shape {
	switch t {
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return &Shape{Form: Timestamp}
	case reflect.TypeFor[metav1.Duration]():
		return &Shape{Form: Duration}
	case reflect.TypeFor[resource.Quantity]():
		return &Shape{Form: Quantity}
	case reflect.TypeFor[intstr.IntOrString]():
		return &Shape{Form: IntOrString}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return r.goValue(t.Elem())
	case reflect.Struct:
		return r.structure(t)
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return &Shape{Form: Bytes}
		}
		return &Shape{Form: List, Elem: r.goValue(t.Elem())}
	case reflect.Map:
		return &Shape{Form: Map, Elem: r.goValue(t.Elem())}
	case reflect.String:
		return &Shape{Form: String}
	case reflect.Bool:
		return &Shape{Form: Bool}
	case reflect.Float32, reflect.Float64:
		return &Shape{Form: Float}
	case reflect.Int, reflect.Int64:
		return &Shape{Form: Integer, Wide: true}
	case reflect.Uint, reflect.Uint64:
		return &Shape{Form: Integer, Unsigned: true, Wide: true}
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return &Shape{Form: Integer, Unsigned: true}
	case reflect.Int8, reflect.Int16, reflect.Int32:
		return &Shape{Form: Integer}
	}
	return &Shape{Form: Anything}
}

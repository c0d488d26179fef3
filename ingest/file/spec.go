package file

import (
	"encoding/json"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/pilotd/pilotd/ingest"
)

// Istio's messages decode JSON leniently: they drop unknown fields, and their errors do not say where the problem is.
// The functions here compare the JSON with the message's descriptor, to refuse unknown fields and to locate errors.

// specIn returns the spec of an object's JSON.
func specIn(raw []byte) any {
	var o struct {
		Spec any `json:"spec"`
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil
	}
	return o.Spec
}

// unknownField returns the path of the first field of the spec that its message does not have, and the name of that
// message.
func unknownField(m ingest.Message, raw []byte) (path, message string) {
	return findUnknown(m.ProtoReflect().Descriptor(), specIn(raw), "spec")
}

func findUnknown(d protoreflect.MessageDescriptor, v any, path string) (string, string) {
	fields, ok := v.(map[string]any)
	if !ok || wellKnown(d) {
		return "", ""
	}
	for _, name := range sortedKeys(fields) {
		f := fieldOf(d, name)
		if f == nil {
			return join(path, name), string(d.Name())
		}
		for _, c := range children(f, fields[name], join(path, name)) {
			if p, message := findUnknown(c.message, c.value, c.path); p != "" {
				return p, message
			}
		}
	}
	return "", ""
}

// locate returns the path of the deepest part of the spec that does not decode, and the reason.
func locate(m ingest.Message, raw []byte) (path, reason string) {
	return findBad(m.ProtoReflect().Descriptor(), specIn(raw), "spec")
}

func findBad(d protoreflect.MessageDescriptor, v any, path string) (string, string) {
	err := try(d, v)
	if err == nil {
		return "", ""
	}
	fields, ok := v.(map[string]any)
	if !ok || wellKnown(d) {
		return path, err.Error()
	}
	for _, name := range sortedKeys(fields) {
		f := fieldOf(d, name)
		if f == nil {
			continue
		}
		at := join(path, name)
		for _, c := range children(f, fields[name], at) {
			if p, reason := findBad(c.message, c.value, c.path); p != "" {
				return p, reason
			}
		}
		if err := try(d, map[string]any{name: fields[name]}); err != nil {
			return at, err.Error()
		}
	}
	return path, err.Error()
}

// try decodes v as a message by itself.
func try(d protoreflect.MessageDescriptor, v any) error {
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		return nil // a message of another API, which is not checked here
	}
	m, ok := t.New().Interface().(json.Unmarshaler)
	if !ok {
		return nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return m.UnmarshalJSON(raw)
}

func fieldOf(d protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if f := d.Fields().ByJSONName(name); f != nil {
		return f
	}
	return d.Fields().ByTextName(name)
}

// wellKnown reports whether a message has a JSON form of its own, as a Duration has.
func wellKnown(d protoreflect.MessageDescriptor) bool {
	return strings.HasPrefix(string(d.FullName()), "google.protobuf.")
}

// child is a message inside the value of a field.
type child struct {
	message protoreflect.MessageDescriptor
	value   any
	path    string
}

// children returns the messages in the value of a field: the value itself, or the elements of a list or map; none for
// scalars.
func children(f protoreflect.FieldDescriptor, v any, path string) []child {
	var found []child
	switch {
	case f.IsMap():
		m, _ := v.(map[string]any)
		if f.MapValue().Message() == nil {
			return nil
		}
		for _, key := range sortedKeys(m) {
			found = append(found, child{f.MapValue().Message(), m[key], join(path, key)})
		}
	case f.Message() == nil:
		return nil
	case f.IsList():
		list, _ := v.([]any)
		for i, e := range list {
			found = append(found, child{f.Message(), e, path + "[" + strconv.Itoa(i) + "]"})
		}
	default:
		found = append(found, child{f.Message(), v, path})
	}
	return found
}

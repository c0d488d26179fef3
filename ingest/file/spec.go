package file

import (
	"encoding/json"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/pilotd/pilotd/ingest"
)

// Istio's messages read JSON leniently: an unknown field is dropped, and an error says nothing of where it is. The
// functions here look at the JSON beside the message's description, to refuse the first and to say the second.

// specIn takes the spec out of an object's JSON.
func specIn(raw []byte) any {
	var o struct {
		Spec any `json:"spec"`
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil
	}
	return o.Spec
}

// unknownField finds a field of the object's spec that the message does not have, and the name of the (sub)message that
// lacks it.
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

// locate finds the deepest part of the object's spec that does not decode, and why.
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

// try decodes v as a message on its own.
func try(d protoreflect.MessageDescriptor, v any) error {
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		return nil // Not one of ours: nothing to say about it.
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

// wellKnown reports whether a message has a JSON form of its own.
func wellKnown(d protoreflect.MessageDescriptor) bool {
	return strings.HasPrefix(string(d.FullName()), "google.protobuf.")
}

// child is a message within a field's value.
type child struct {
	message protoreflect.MessageDescriptor
	value   any
	path    string
}

// children returns the messages in the value of a field: itself, or the elements of a list or map; none for scalars.
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

package support

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Finding is a field that an object sets and pilotd does not serve.
type Finding struct {
	// Field is its path, "spec.http[0].delegate".
	Field string
	// Reason says what happens instead.
	Reason   string
	Security bool
}

// maxFindings bounds the Findings for one object.
const maxFindings = 32

// Unserved returns what m, at the path at, sets without effect: up to maxFindings, with lists in their order and fields
// in the order of their numbers.
func (t *Table) Unserved(m proto.Message, at string) []Finding {
	w := walk{table: t}
	w.message(m.ProtoReflect(), at)
	return w.found
}

// UnservedMeta finds the annotations and labels of an object that have no effect.
func (t *Table) UnservedMeta(annotations, labels map[string]string) []Finding {
	w := walk{table: t}
	for _, of := range []struct {
		section, at string
		names       map[string]string
	}{{annotationSection, "metadata.annotations", annotations}, {labelSection, "metadata.labels", labels}} {
		for _, name := range slices.Sorted(maps.Keys(of.names)) {
			if e, ok := t.section(of.section, "").Entry(name); ok {
				w.note(e, of.at+"["+name+"]")
			}
		}
	}
	return w.found
}

// walk collects Findings while it visits a message.
type walk struct {
	table *Table
	found []Finding
}

func (w *walk) note(e Entry, at string) (goOn bool) {
	if e.State == NotServed && len(w.found) < maxFindings {
		reason := "is not served yet"
		if e.Remark != "" {
			reason += ": " + e.Remark
		}
		w.found = append(w.found, Finding{Field: at, Reason: reason, Security: e.Security})
	}
	return e.State == Served && len(w.found) < maxFindings
}

// message visits the fields that m sets. It treats a message that is not in the table, such as a Duration, as a plain
// value.
func (w *walk) message(m protoreflect.Message, at string) {
	section := w.table.section(messageSection, string(m.Descriptor().FullName()))
	if section == nil {
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if !m.Has(f) {
			continue
		}
		name := f.JSONName()
		path := strings.TrimPrefix(at+"."+name, ".")
		if e, ok := section.Entry(name); ok && w.note(e, path) {
			w.field(f, m.Get(f), path)
		}
	}
}

// field visits the value of a field.
func (w *walk) field(f protoreflect.FieldDescriptor, v protoreflect.Value, at string) {
	switch {
	case f.IsMap():
		if f.MapValue().Message() == nil {
			return
		}
		keys := map[string]protoreflect.Message{}
		v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			keys[k.String()] = v.Message()
			return true
		})
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			w.message(keys[k], at+"["+k+"]")
		}
	case f.IsList():
		for i := range v.List().Len() {
			w.value(f, v.List().Get(i), at+"["+strconv.Itoa(i)+"]")
		}
	default:
		w.value(f, v, at)
	}
}

func (w *walk) value(f protoreflect.FieldDescriptor, v protoreflect.Value, at string) {
	switch {
	case f.Message() != nil:
		w.message(v.Message(), at)
	case f.Enum() != nil:
		section := w.table.section(enumSection, string(f.Enum().FullName()))
		if name := f.Enum().Values().ByNumber(v.Enum()); section != nil && name != nil {
			if e, ok := section.Entry(string(name.Name())); ok && e.State == NotServed {
				e.Remark = string(name.Name()) + " " + e.Remark
				w.note(e, at)
			}
		}
	}
}

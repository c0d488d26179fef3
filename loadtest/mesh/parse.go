package mesh

import (
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Parse reads a shape from YAML. An error says the file's name and line, the field, and what was expected.
func Parse(file string, text []byte) (Shape, error) {
	var s Shape
	r := shapeReader{file: file, lines: map[string]int{}, says: map[string]string{}}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return s, fmt.Errorf("%s: %s", file, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(doc.Content) == 0 {
		return s, fmt.Errorf("%s:1: the file is empty: expected namespaces, services and pods", file)
	}
	if err := r.fields(doc.Content[0], reflect.ValueOf(&s).Elem(), ""); err != nil {
		return s, err
	}
	if p := s.check(); p.field != "" {
		return s, r.problem(p)
	}
	return s, nil
}

// shapeReader knows where fields are.
type shapeReader struct {
	// Immutable.
	file string
	// By field, dotted.
	lines map[string]int
	says  map[string]string
}

// problem returns what is wrong with a value that was read, or was not there.
func (r *shapeReader) problem(p problem) error {
	if line, ok := r.lines[p.field]; ok {
		return fmt.Errorf("%s:%d: %s is %s: expected %s", r.file, line, p.field, r.says[p.field], p.expected)
	}
	group, _, _ := strings.Cut(p.field, ".")
	return fmt.Errorf("%s:%d: %s is missing: expected %s", r.file, max(1, r.lines[group]), p.field, p.expected)
}

// fields reads a mapping into a struct.
func (r *shapeReader) fields(n *yaml.Node, into reflect.Value, at string) error {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	names := map[string]int{}
	var known []string
	for i := range into.NumField() {
		name, _, _ := strings.Cut(into.Type().Field(i).Tag.Get("json"), ",")
		names[name] = i
		known = append(known, name)
	}
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("%s:%d: %sexpected the fields %s", r.file, n.Line, prefix(at, ": "),
			strings.Join(known, ", "))
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		field := prefix(at, ".") + key.Value
		at, ok := names[key.Value]
		if !ok {
			return fmt.Errorf("%s:%d: %s is unknown: expected one of %s", r.file, key.Line, field,
				strings.Join(known, ", "))
		}
		if _, twice := r.lines[field]; twice {
			return fmt.Errorf("%s:%d: %s is there twice: expected it once", r.file, key.Line, field)
		}
		r.lines[field], r.says[field] = key.Line, value.Value
		if err := r.value(value, into.Field(at), field); err != nil {
			return err
		}
	}
	return nil
}

func prefix(at, separator string) string {
	if at == "" {
		return ""
	}
	return at + separator
}

// value reads one field.
func (r *shapeReader) value(n *yaml.Node, into reflect.Value, field string) error {
	if into.Kind() == reflect.Struct {
		return r.fields(n, into, field)
	}
	if err := n.Decode(into.Addr().Interface()); err == nil && n.Tag != "!!null" {
		return nil
	}
	expected := map[reflect.Kind]string{reflect.Int: "a whole number", reflect.Uint64: "a whole number, 0 or more",
		reflect.Float64: "a number",
		reflect.Bool:    "true or false", reflect.String: "text"}[into.Kind()]
	says := n.Value
	if n.Kind != yaml.ScalarNode {
		says = "no single value"
	} else if says == "" {
		says = "empty"
	}
	return fmt.Errorf("%s:%d: %s is %s: expected %s", r.file, n.Line, field, says, expected)
}

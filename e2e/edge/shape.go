package edge

import "strings"

// Form is how a Shape's values are written in JSON.
type Form int

// The forms of values.
const (
	Struct Form = iota // an object with fields
	List
	Map
	String
	Bytes
	Enum
	Bool
	Integer
	Float
	Duration
	Timestamp
	IntOrString
	Quantity
	Anything // any JSON at all
)

// Shape describes one type. Immutable once its reader has returned it. Shapes of recursive types are cyclic.
type Shape struct {
	// Type is the full name of a message or a Go type; empty for scalars, lists and maps.
	Type string
	Form Form
	// Fields are those of a Struct.
	Fields []Field
	// Elem is the shape of the elements of a List and of the values of a Map.
	Elem *Shape
	// Names are the values of an Enum.
	Names []string
	// Unsigned and Wide say which integers fit.
	Unsigned, Wide bool
}

// Field is a field of a Struct.
type Field struct {
	Name  string
	Shape *Shape
	// OneOf names the group of fields of which one at most is set; empty for none.
	OneOf string
}

func (s *Shape) field(name string) (Field, bool) {
	for _, f := range s.Fields {
		if f.Name == name {
			return f, true
		}
	}
	return Field{}, false
}

// Path leads from an object to a field in it: "spec", "http", "[]", "name". "[]" is an element of a list, "{}" a value
// of a map.
type Path []string

func (p Path) String() string {
	return strings.NewReplacer(".[]", "[]", ".{}", "{}").Replace(strings.Join(p, "."))
}

// maxDepth and maxRepeats bound the paths of recursive types.
const (
	maxDepth   = 16
	maxRepeats = 2
)

// Paths returns the path of every field of s, of lists and messages as well as of scalars.
func Paths(s *Shape) []Path {
	w := walker{on: make(map[string]int)}
	w.walk(s, nil)
	return w.found
}

// walker collects paths. Owned by the call of Paths that made it.
type walker struct {
	found []Path
	on    map[string]int // how often a type is on the way from the root
}

func (w *walker) walk(s *Shape, at Path) {
	if len(at) > 0 {
		w.found = append(w.found, at)
	}
	if len(at) >= maxDepth {
		return
	}
	if s.Type != "" {
		if w.on[s.Type] >= maxRepeats {
			return
		}
		w.on[s.Type]++
		defer func() { w.on[s.Type]-- }()
	}
	switch s.Form {
	case Struct:
		for _, f := range s.Fields {
			w.walk(f.Shape, at.with(f.Name))
		}
	case List:
		w.walk(s.Elem, at.with("[]"))
	case Map:
		w.walk(s.Elem, at.with("{}"))
	}
}

// with returns p and one step more. It never shares memory with another path.
func (p Path) with(step string) Path {
	return append(p[:len(p):len(p)], step)
}

// at returns the shape that path leads to, nil if there is none, and the oneof group of its last step.
func (s *Shape) at(path Path) *Shape {
	for _, step := range path {
		if s == nil {
			return nil
		}
		switch s.Form {
		case List, Map:
			s = s.Elem
		case Struct:
			f, ok := s.field(step)
			if !ok {
				return nil
			}
			s = f.Shape
		default:
			return nil
		}
	}
	return s
}

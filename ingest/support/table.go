package support

import (
	_ "embed" // fields.txt
	"fmt"
	"iter"
	"strings"
)

//go:embed fields.txt
var fields string

// State is what pilotd does with a field.
type State string

// The states, as fields.txt explains them.
const (
	Served    State = "served"
	Refused   State = "refused"
	NotServed State = "not-served"
	Elsewhere State = "elsewhere"
	Unused    State = "unused"
)

// Entry is the row of one field, enum value, annotation or label.
type Entry struct {
	State State
	// Remark says what happens instead, or what reads the field; often empty.
	Remark string
	// Security says that not serving the field may let traffic through that the user means to block.
	Security bool
}

// The sections of fields.txt.
const (
	messageSection    = "message"
	enumSection       = "enum"
	structSection     = "struct"
	annotationSection = "annotations"
	labelSection      = "labels"
)

// everything stands for the fields that a section does not list.
const everything = "*"

// Section is the entries of one type, or of annotations or labels.
type Section struct {
	// Kind is message, enum, struct, annotations or labels; Name is the type's full name, empty for the last two.
	Kind, Name string
	// Names are the names of the entries, in the order of the file.
	Names []string

	entries map[string]Entry
}

// Entry returns the row of name; false if there is none.
func (s *Section) Entry(name string) (Entry, bool) {
	if s == nil {
		return Entry{}, false
	}
	e, ok := s.entries[name]
	if !ok {
		e, ok = s.entries[everything]
	}
	return e, ok
}

// Table is the parsed fields.txt.
type Table struct {
	sections []*Section
	byName   map[string]*Section // by kind and name
}

// New parses the table. It panics if fields.txt is malformed, which this package's tests rule out.
func New() *Table {
	t, err := parse(fields)
	if err != nil {
		panic(err)
	}
	return t
}

// Sections yields the sections in the order of the file.
func (t *Table) Sections() iter.Seq[*Section] {
	return func(yield func(*Section) bool) {
		for _, s := range t.sections {
			if !yield(s) {
				return
			}
		}
	}
}

// section returns the section of a type; nil if there is none.
func (t *Table) section(kind, name string) *Section { return t.byName[kind+" "+name] }

// parse parses a table. Its errors name the line.
func parse(text string) (*Table, error) {
	t := &Table{byName: map[string]*Section{}}
	var in *Section
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		if !strings.HasPrefix(line, " ") {
			kind, name, _ := strings.Cut(line, " ")
			in = &Section{Kind: kind, Name: name, entries: map[string]Entry{}}
			if t.section(kind, name) != nil {
				return nil, fmt.Errorf("fields.txt:%d: %s is there twice", i+1, line)
			}
			t.sections = append(t.sections, in)
			t.byName[kind+" "+name] = in
			continue
		}
		words := strings.Fields(line)
		if in == nil || len(words) < 2 {
			return nil, fmt.Errorf("fields.txt:%d: expected a field's name and its state, below the name of its type",
				i+1)
		}
		e := Entry{State: State(words[1])}
		switch e.State {
		case Served, Refused, NotServed, Elsewhere, Unused:
		default:
			return nil, fmt.Errorf("fields.txt:%d: %q is no state", i+1, words[1])
		}
		remark, security := strings.CutSuffix(strings.Join(words[2:], " "), "security")
		e.Remark, e.Security = strings.TrimSuffix(strings.TrimSpace(remark), ";"), security
		if _, ok := in.entries[words[0]]; ok {
			return nil, fmt.Errorf("fields.txt:%d: %s is there twice", i+1, words[0])
		}
		in.entries[words[0]] = e
		in.Names = append(in.Names, words[0])
	}
	return t, nil
}

package file

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// definitions say which files define an object. Of several, the first in path order, and in the file, wins; files that
// vanished just now come last, and give way silently.
type definitions map[value.ObjectKey][]definition

// definition is one definition: the i-th object of a file.
type definition struct {
	file *content
	i    int
}

func (c definition) object() *object { return &c.file.objects[c.i] }

func (c definition) compare(d definition) int {
	return cmp.Or(c.file.gone.Compare(d.file.gone), cmp.Compare(c.file.path, d.file.path), cmp.Compare(c.i, d.i))
}

// add takes in the objects that a file has.
func (l definitions) add(file *content) {
	for i := range file.objects {
		l[file.objects[i].key] = append(l[file.objects[i].key], definition{file, i})
	}
}

// remove takes out the objects that a file had.
func (l definitions) remove(file *content, objects []object) {
	for i := range objects {
		key := objects[i].key
		if rest := slices.DeleteFunc(l[key], func(c definition) bool { return c.file == file }); len(rest) > 0 {
			l[key] = rest
		} else {
			delete(l, key)
		}
	}
}

// winner returns the definition that counts.
func (l definitions) winner(key value.ObjectKey) (definition, bool) {
	all := l[key]
	if len(all) == 0 {
		return definition{}, false
	}
	return slices.MinFunc(all, definition.compare), true
}

// problems returns what is wrong with a file: what its content says, and objects that an earlier definition wins.
func (l definitions) problems(file *content) []problem {
	out := slices.Clone(file.problems)
	if !file.gone.IsZero() {
		return out
	}
	for i := range file.objects {
		o := &file.objects[i]
		if len(l[o.key]) < 2 {
			continue
		}
		if w, _ := l.winner(o.key); w != (definition{file, i}) {
			out = append(out, problem{key: o.key, path: o.path, line: o.line, reason: fmt.Sprintf(
				"is defined twice, here and in %s, which comes first and is in force: expected one definition",
				w.object().where())})
		}
	}
	return out
}

// sent is what the sink has of an object.
type sent struct {
	object *object
	age    int64
}

// settle brings what is in force of the objects of keys up to date, and returns the events that tell it.
func (s *Source) settle(keys map[value.ObjectKey]struct{}) []ingest.Event {
	var events []ingest.Event
	for key := range keys {
		w, ok := s.definitions.winner(key)
		was, known := s.inForce[key]
		switch {
		case !ok && known:
			delete(s.inForce, key)
			events = append(events, ingest.Event{Source: s.dir, Key: key, Where: was.object.where()})
		case ok:
			o := w.object()
			s.inForce[key] = sent{o, w.file.age}
			if !known || was.object.typed != o.typed || was.age != w.file.age {
				events = append(events, ingest.Event{Source: s.dir, Key: key, Object: o.aged(w.file.age),
					Where: o.where()})
			}
		}
	}
	return events
}

package file

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// definitions records which files define an object. If several do, the first one in path order, and within a file, is
// in force. Files that have just vanished come last and yield without a report.
type definitions map[value.ObjectKey][]definition

// definition is the object at index i of a file.
type definition struct {
	file *content
	i    int
}

func (c definition) object() *object { return &c.file.objects[c.i] }

func (c definition) compare(d definition) int {
	return cmp.Or(c.file.gone.Compare(d.file.gone), cmp.Compare(c.file.path, d.file.path), cmp.Compare(c.i, d.i))
}

// add records the objects of a file.
func (l definitions) add(file *content) {
	for i := range file.objects {
		l[file.objects[i].key] = append(l[file.objects[i].key], definition{file, i})
	}
}

// remove removes objects that a file had.
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

// winner returns the definition that is in force.
func (l definitions) winner(key value.ObjectKey) (definition, bool) {
	all := l[key]
	if len(all) == 0 {
		return definition{}, false
	}
	return slices.MinFunc(all, definition.compare), true
}

// problems returns the problems of a file: those of its content, and objects that an earlier definition overrides.
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

// sent is what the sink has received for an object.
type sent struct {
	object *object
	age    int64
}

// settle determines which definition of each key is in force now, and returns the events for those that changed.
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

package plan

import (
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// edits collects what differs between two bases.
type edits struct {
	clusters, listeners, routes edit[*encodecache.Entry]
	assignments                 edit[*Assignment]
	groups                      edit[*assignmentGroup]
}

// edit is a set of keyed replacements: what is put wins over what is dropped, in whichever order they come. The zero
// edit changes nothing.
type edit[V comparable] map[string]V

func (e *edit[V]) drop(k string) {
	if _, ok := (*e)[k]; !ok {
		var zero V
		e.put(k, zero)
	}
}

func (e *edit[V]) put(k string, v V) {
	if *e == nil {
		*e = edit[V]{}
	}
	(*e)[k] = v
}

func (e edit[V]) apply(m chunked.Map[V]) chunked.Map[V] {
	if len(e) == 0 {
		return m
	}
	var zero V
	list := make([]chunked.Edit[V], 0, len(e))
	for k, v := range e {
		list = append(list, chunked.Edit[V]{Key: k, Value: v, Delete: v == zero})
	}
	return m.Apply(list)
}

// putEntry puts a resource, or takes it away where it is left out.
func putEntry(e *edit[*encodecache.Entry], r *encodecache.Entry) {
	if r.Absent() {
		e.put(r.Name(), nil)
	} else {
		e.put(r.Name(), r)
	}
}

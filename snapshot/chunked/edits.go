package chunked

// Edits is a set of replacements by key: what is put wins over what is dropped, in whichever order they come. The zero
// value of V stands for a key that is dropped. Edits that are nil change nothing.
type Edits[V comparable] map[string]V

// Drop takes an item away, unless another one is put in its place.
func (e *Edits[V]) Drop(key string) {
	if _, ok := (*e)[key]; !ok {
		var zero V
		e.Put(key, zero)
	}
}

// Put puts an item in the place of the one that has the key, if there is one.
func (e *Edits[V]) Put(key string, v V) {
	if *e == nil {
		*e = Edits[V]{}
	}
	(*e)[key] = v
}

// Apply returns m after the edits.
func (e Edits[V]) Apply(m Map[V]) Map[V] { return m.Apply(e.List()) }

// List returns the edits one by one, in no order; nil if there are none.
func (e Edits[V]) List() (list []Edit[V]) {
	if len(e) == 0 {
		return nil
	}
	var zero V
	list = make([]Edit[V], 0, len(e))
	for k, v := range e {
		list = append(list, Edit[V]{Key: k, Value: v, Delete: v == zero})
	}
	return list
}

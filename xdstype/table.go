package xdstype

import "fmt"

// Table is the list of the types that a process serves. Immutable.
type Table struct {
	rows     []Row
	byURL    map[string]Type
	warmedBy []Type
}

// maxRows is how many rows a Table may have: a Set has a bit for each.
const maxRows = 64

// NewTable makes a Table of rows, in the order in which their types are sent. A row may relate only to rows before it.
// It panics if the rows contradict each other: they are part of the program.
func NewTable(rows ...Row) *Table {
	if len(rows) > maxRows {
		panic(fmt.Sprintf("xdstype: %d rows, at most %d", len(rows), maxRows))
	}
	t := &Table{rows: append([]Row(nil), rows...), byURL: make(map[string]Type, len(rows))}
	var by [FromIdentity + 1]int
	for i := range t.rows {
		r := &t.rows[i]
		r.Type = Type(i)
		if _, twice := t.byURL[r.URL]; twice {
			panic("xdstype: two rows of " + r.URL)
		}
		t.byURL[r.URL] = r.Type
		t.warmedBy = append(t.warmedBy, None)
		for _, other := range []Type{r.Follows, r.Warms, r.Mentions} {
			if other != None && other >= r.Type {
				panic(fmt.Sprintf("xdstype: %s relates to row %d, which does not stand before it", r.URL, other))
			}
		}
		if r.Warms != None {
			t.warmedBy[r.Warms] = r.Type
		}
		by[r.Source]++
	}
	if by[FromEndpoints] > 1 || by[FromIdentity] > 1 {
		panic("xdstype: more than one row is made from endpoints, or for an identity")
	}
	return t
}

// Standard returns the Table of the standard rows.
func Standard() *Table {
	rows := standard()
	return NewTable(rows[:]...)
}

// With returns a Table with more rows after those of t.
func (t *Table) With(rows ...Row) *Table {
	return NewTable(append(t.rows[:len(t.rows):len(t.rows)], rows...)...)
}

// Len returns the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// Rows returns the rows, in the order in which their types are sent; read only.
func (t *Table) Rows() []Row { return t.rows }

// Row returns the row of a type.
func (t *Table) Row(typ Type) *Row { return &t.rows[typ] }

// Of returns the type with that URL, and reports whether it is served.
func (t *Table) Of(url string) (Type, bool) {
	typ, ok := t.byURL[url]
	return typ, ok
}

// WarmedBy returns the type whose resources those of typ need to become warm, or None. The ACK of a type that becomes
// warm may take for ever.
func (t *Table) WarmedBy(typ Type) Type { return t.warmedBy[typ] }

// FromEndpoints returns the type that is made from endpoints, or None.
func (t *Table) FromEndpoints() Type { return t.made(FromEndpoints) }

// FromIdentity returns the type that is made for each client by who it is, or None.
func (t *Table) FromIdentity() Type { return t.made(FromIdentity) }

// made returns the first type of a source, or None.
func (t *Table) made(by Source) Type {
	for i := range t.rows {
		if t.rows[i].Source == by {
			return Type(i)
		}
	}
	return None
}

// Set is a set of types.
type Set uint64

// Has reports whether t is in the set.
func (s Set) Has(t Type) bool { return s&(1<<t) != 0 }

// With returns the set and t.
func (s Set) With(t Type) Set { return s | 1<<t }

// Without returns the set but t.
func (s Set) Without(t Type) Set { return s &^ (1 << t) }

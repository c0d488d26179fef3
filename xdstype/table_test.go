package xdstype_test

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilotd/pilotd/xdstype"
)

// Every standard type is found by its URL, in the order of the constants, and has what people are told of it.
func TestStandardRows(t *testing.T) {
	table := xdstype.Standard()
	if table.Len() != xdstype.NumStandard {
		t.Fatalf("%d rows, want %d", table.Len(), xdstype.NumStandard)
	}
	short, noun := map[string]bool{}, map[string]bool{}
	for i, row := range table.Rows() {
		typ := xdstype.Type(i)
		if found, ok := table.Of(row.URL); !ok || found != typ || row.Type != typ || typ.URL() != row.URL {
			t.Errorf("%s is type %d in row %d", row.URL, found, i)
		}
		if found, ok := xdstype.Of(row.URL); !ok || found != typ {
			t.Errorf("%s is the standard type %d in row %d", row.URL, found, i)
		}
		if row.Short == "" || short[row.Short] || row.Noun == "" || noun[row.Noun] {
			t.Errorf("%s is called %q and %q", row.URL, row.Short, row.Noun)
		}
		short[row.Short], noun[row.Noun] = true, true
	}
	for typ, want := range []string{"CDS", "EDS", "LDS", "RDS", "NDS"} {
		if got := xdstype.Type(typ).String(); got != want {
			t.Errorf("type %d is %s, want %s", typ, got, want)
		}
	}
	if table.WarmedBy(xdstype.Cluster) != xdstype.Endpoint || table.WarmedBy(xdstype.Listener) != xdstype.None ||
		table.FromEndpoints() != xdstype.Endpoint {
		t.Error("endpoints warm clusters, and nothing else warms anything")
	}
}

// A Table may have rows of types that nobody knows; they come after the others and stand alone.
func TestOpaqueRows(t *testing.T) {
	const url = "type.googleapis.com/example.Thing"
	if _, ok := xdstype.Standard().Of(url); ok {
		t.Fatal("an unknown type is served")
	}
	table := xdstype.Standard().With(xdstype.Opaque(url))
	typ, ok := table.Of(url)
	if !ok || int(typ) != xdstype.NumStandard || table.Row(typ).Follows != xdstype.None {
		t.Errorf("the row is %d, %v", typ, ok)
	}
}

// A Table refuses rows that contradict each other.
func TestRowsThatContradict(t *testing.T) {
	one := xdstype.Opaque("a")
	for what, rows := range map[string][]xdstype.Row{
		"one URL twice":             {one, one},
		"a row that is not there":   {{URL: "a", Follows: 3, Warms: xdstype.None, Mentions: xdstype.None}},
		"a row that follows itself": {{URL: "a", Follows: 0, Warms: xdstype.None, Mentions: xdstype.None}},
		"two from endpoints": {
			{URL: "a", Source: xdstype.FromEndpoints, Follows: xdstype.None, Warms: xdstype.None, Mentions: xdstype.None},
			{URL: "b", Source: xdstype.FromEndpoints, Follows: xdstype.None, Warms: xdstype.None, Mentions: xdstype.None},
		},
	} {
		t.Run(what, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("the Table is made")
				}
			}()
			xdstype.NewTable(rows...)
		})
	}
}

// The empty route has its name and validate_clusters, whatever bytes the name is of.
func TestEmptyRoute(t *testing.T) {
	b := xdstype.Route.Row().Empty("80")
	num, _, n := protowire.ConsumeTag(b)
	name, _ := protowire.ConsumeString(b[n:])
	if num != 1 || name != "80" {
		t.Errorf("field %d is %q", num, name)
	}
	for typ := range xdstype.Type(xdstype.NumStandard) {
		if typ != xdstype.Route && typ.Row().Empty != nil {
			t.Errorf("%v has an empty resource", typ)
		}
	}
}

func TestSet(t *testing.T) {
	var s xdstype.Set
	s = s.With(xdstype.Route).With(xdstype.Cluster)
	if !s.Has(xdstype.Route) || s.Has(xdstype.Endpoint) || s.Without(xdstype.Route).Has(xdstype.Route) {
		t.Errorf("the set is %b", s)
	}
}

package plan

import (
	"reflect"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
)

// TestEveryTableOfWhatIsSentIsChecked: whatever Table makes parts of resources has checks, origins, and a place for
// what goes wrong. Who adds one without finds out here.
func TestEveryTableOfWhatIsSentIsChecked(t *testing.T) {
	free := []string{"soleHostKey"} // put together of checked parts alone
	var look func(path string, typ reflect.Type)
	look = func(path string, typ reflect.Type) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			name := f.Type.String()
			switch {
			case strings.HasPrefix(name, "plan.checked["):
			case f.Type.Kind() == reflect.Struct:
				look(path+"."+f.Name, f.Type)
			case strings.HasPrefix(name, "*encodecache.Table["):
				sent := strings.HasSuffix(name, "encodecache.Fragment]") ||
					strings.HasSuffix(name, "encodecache.Entry]") || strings.HasSuffix(name, "encodecache.Stencil]")
				if sent && !strings.Contains(name, free[0]) {
					t.Errorf("%s.%s is a %s: what it makes is sent, but not checked", path, f.Name, name)
				}
			}
		}
	}
	look("Tables", reflect.TypeFor[Tables]())
}

// TestPanicsInFills: making something of a Key panics. What the Key would have given is left out, once; it is told with
// its objects, and the table goes on with other Keys.
func TestPanicsInFills(t *testing.T) {
	f := newFaults()
	table := fragments(f, "thing", func(k gen.CatchAllKey) ([]byte, []gen.Fault) {
		if k.Cluster == "bad" {
			panic("broken invariant")
		}
		return []byte(k.Cluster), nil
	})
	if got := table.Get(gen.CatchAllKey{Cluster: "bad"}); len(got.Bytes()) != 0 {
		t.Errorf("a panic gave %q", got.Bytes())
	}
	if got := table.Get(gen.CatchAllKey{Cluster: "good"}); string(got.Bytes()) != "good" {
		t.Errorf("the next Key gives %q", got.Bytes())
	}
	for range 3 { // it is held: nothing is made twice
		table.Get(gen.CatchAllKey{Cluster: "bad"})
	}
	if table.Fills() != 2 || len(f.standing) != 1 || f.panics != 1 {
		t.Errorf("%d fills, %d faults, %d panics", table.Fills(), len(f.standing), f.panics)
	}
	leaf := leaves(f, "thing", RouteType,
		func(k gen.BlackholeKey) ([]byte, []gen.Fault) { panic("broken") }).Get(gen.BlackholeKey{Port: 80})
	if !leaf.Absent() || leaf.Name() != "blackhole:80" || leaf.Origin() != any(gen.BlackholeKey{Port: 80}) {
		t.Errorf("a panic gave resource %q, absent %v, from %v", leaf.Name(), leaf.Absent(), leaf.Origin())
	}
	var e edit[*encodecache.Entry]
	putEntry(&e, leaf)
	if v, ok := e["blackhole:80"]; !ok || v != nil {
		t.Error("a resource that is left out stays as it was")
	}
}

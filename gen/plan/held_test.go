package plan

import (
	"path"
	"reflect"
	"strings"
	"testing"
)

// TestSizesKnowEveryTable keeps a new table from being left out: invariant I9 is checked by Sizes.
func TestSizesKnowEveryTable(t *testing.T) {
	sizes := map[string]int{}
	for name, n := range NewTables().Sizes() {
		sizes[strings.ToLower(name)] = n
	}
	n := 0
	var look func(prefix string, typ reflect.Type)
	look = func(prefix string, typ reflect.Type) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			name := strings.ToLower(strings.TrimPrefix(prefix+"."+f.Name, "."))
			if f.Anonymous && f.Type.Kind() == reflect.Struct {
				name = prefix
			}
			switch {
			case f.Name == "faults":
			case f.Type.Kind() == reflect.Struct:
				look(name, f.Type)
			case f.Type.Kind() == reflect.Pointer:
				name = strings.TrimSuffix(name, ".table") // of a checked one
				n++
				if _, ok := sizes[name]; !ok {
					t.Errorf("Sizes does not tell of %s", name)
				}
			}
		}
	}
	look("", reflect.TypeFor[Tables]())
	for _, s := range NewTables().sources.all {
		typ := reflect.TypeOf(s).Elem()
		look(path.Base(typ.PkgPath()), typ)
	}
	if n != len(sizes) {
		t.Errorf("Sizes tells of %d tables, there are %d", len(sizes), n)
	}
}

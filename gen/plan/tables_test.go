package plan

import (
	"reflect"
	"strings"
	"testing"
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
			case strings.HasPrefix(name, "checked.Table["):
			case f.Type.Kind() == reflect.Struct:
				look(path+"."+f.Name, f.Type)
			case strings.HasPrefix(name, "*encodecache.Table["):
				sent := strings.HasSuffix(name, "encodecache.Fragment]") ||
					strings.HasSuffix(name, "encodecache.Entry]") || strings.HasSuffix(name, "encodecache.Template]")
				if sent && !strings.Contains(name, free[0]) {
					t.Errorf("%s.%s is a %s: what it makes is sent, but not checked", path, f.Name, name)
				}
			}
		}
	}
	look("Tables", reflect.TypeFor[Tables]())
}

package support

import (
	"go/types"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// reads returns what the code reads: "package.Type.Field" of fields and of getters, and "package.Type" of the types
// that stand for one field of a oneof.
func reads(t *testing.T) map[string]bool {
	t.Helper()
	const module = "github.com/pilotd/pilotd/"
	found, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes |
			packages.NeedTypesInfo | packages.NeedImports,
		BuildFlags: []string{"-tags=vtprotobuf"},
	}, module+"gen/...", module+"ingest", module+"ingest/istio", module+"ingest/kube", module+"snapshot/...")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, p := range found {
		for _, e := range p.Errors {
			t.Error(e)
		}
		owners := fieldOwners(p.Types.Imports())
		for id, object := range p.TypesInfo.Uses {
			if checks(p.Fset.Position(id.Pos()).Filename) {
				continue
			}
			switch o := object.(type) {
			case *types.Var:
				out[owners[o]+"."+o.Name()] = true
			case *types.Func:
				if recv := o.Signature().Recv(); recv != nil {
					out[typeName(recv.Type())+"."+strings.TrimPrefix(o.Name(), "Get")] = true
				}
			case *types.TypeName:
				out[typeName(o.Type())] = true
			}
		}
	}
	return out
}

// checks reports whether a file only checks objects, or gives the mesh its defaults, which is no use of them.
func checks(file string) bool {
	name := filepath.Base(file)
	return name == "check.go" || name == "mesh.go" || strings.HasSuffix(name, "_check.go")
}

// fieldOwners returns the names of the structs in which fields stand.
func fieldOwners(imports []*types.Package) map[*types.Var]string {
	owners := map[*types.Var]string{}
	for _, p := range imports {
		for _, name := range p.Scope().Names() {
			if s, ok := p.Scope().Lookup(name).Type().Underlying().(*types.Struct); ok {
				for f := range s.Fields() {
					owners[f] = p.Path() + "." + name
				}
			}
		}
	}
	return owners
}

// typeName returns "package.Type" of a named type or a pointer to one.
func typeName(typ types.Type) string {
	if p, ok := typ.(*types.Pointer); ok {
		typ = p.Elem()
	}
	if n, ok := typ.(*types.Named); ok && n.Obj().Pkg() != nil {
		return n.Obj().Pkg().Path() + "." + n.Obj().Name()
	}
	return ""
}

// goNames returns the names under which the code may read a field of a message.
func goNames(t *testing.T, message string, f protoreflect.FieldDescriptor) []string {
	m, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(message))
	if err != nil {
		t.Fatal(err)
	}
	typ := reflect.TypeOf(m.Zero().Interface()).Elem()
	whole := typ.PkgPath() + "." + typ.Name()
	for i := range typ.NumField() {
		if strings.Contains(typ.Field(i).Tag.Get("protobuf"), ",name="+string(f.Name())+",") {
			return []string{whole + "." + typ.Field(i).Name}
		}
	}
	name := strings.ToUpper(f.JSONName()[:1]) + f.JSONName()[1:] // of a oneof: a type of its own stands for it
	return []string{whole + "." + name, whole + "_" + name, whole + "_" + name + "_"}
}

// TestServedFieldsAreRead: what fields.txt calls served is read by something else than a check, and what it calls not
// served is not.
func TestServedFieldsAreRead(t *testing.T) {
	read := reads(t)
	for s := range New().Sections() {
		switch s.Kind {
		case messageSection:
			m, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(s.Name))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range s.Names {
				e, _ := s.Entry(name)
				is := false
				for _, n := range goNames(t, s.Name, m.Descriptor().Fields().ByJSONName(name)) {
					is = is || read[n]
				}
				if is != (e.State == Served) && e.State != Elsewhere && !half(s.Name+"."+name) {
					t.Errorf("%s.%s is %s; is it read: %v", s.Name, name, e.State, is)
				}
			}
		case structSection:
			for _, name := range s.Names {
				if e, _ := s.Entry(name); e.State == Served && name != "metadata" && !readStruct(read, s.Name, name) {
					t.Errorf("%s.%s is served, and not read", s.Name, name)
				}
			}
		}
	}
}

// readStruct reports whether a field of a struct is read, whose Go name differs from its JSON name in case alone.
func readStruct(read map[string]bool, typ, name string) bool {
	for n := range read {
		if strings.EqualFold(n, typ+"."+name) {
			return true
		}
	}
	return false
}

// half reports whether a field is read though it is not served: something is made of it that has no effect for lack of
// another thing.
func half(field string) bool {
	switch field {
	case "istio.networking.v1alpha3.IstioEgressListener.bind", "istio.mesh.v1alpha1.MeshConfig.extensionProviders":
		return true
	}
	return false
}

package gen_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot/value"
)

// keys returns all types of this package that a table finds something by, and those that Keys are made of.
func keys() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[gen.AccessKey](), reflect.TypeFor[gen.APIListenerKey](), reflect.TypeFor[gen.BlackholeKey](),
		reflect.TypeFor[gen.CatchAllKey](),
		reflect.TypeFor[gen.ChainKey](), reflect.TypeFor[gen.ChainList](), reflect.TypeFor[gen.ClusterKey](),
		reflect.TypeFor[gen.DestinationLink](), reflect.TypeFor[gen.EndpointKey](),
		reflect.TypeFor[gen.EndpointMetadataKey](), reflect.TypeFor[gen.GatewayChainKey](),
		reflect.TypeFor[gen.GatewayListenerKey](), reflect.TypeFor[gen.HTTPConnectionManagerKey](),
		reflect.TypeFor[gen.InboundChainsKey](), reflect.TypeFor[gen.InboundClusterKey](),
		reflect.TypeFor[gen.InboundListenerKey](), reflect.TypeFor[gen.NamesKey](), reflect.TypeFor[gen.NamesLink](),
		reflect.TypeFor[gen.OutboundListenerKey](),
		reflect.TypeFor[gen.RouteConfigurationKey](), reflect.TypeFor[gen.RoutesKey](), reflect.TypeFor[gen.RoutesLink](),
		reflect.TypeFor[gen.ServerListenerKey](), reflect.TypeFor[gen.StaticClusterKey](),
		reflect.TypeFor[gen.TCPProxyKey](), reflect.TypeFor[gen.VirtualHTTPKey](), reflect.TypeFor[gen.VirtualHostKey](),
		reflect.TypeFor[gen.VirtualOutboundKey](),
	}
}

// TestKeysHoldPartsOfTheMesh: no Key holds the mesh's configuration whole, directly or by way of what it holds, so that
// an edit of what a Key does not read makes no other Key. Each can be found in a map.
func TestKeysHoldPartsOfTheMesh(t *testing.T) {
	for _, key := range keys() {
		if !key.Comparable() {
			t.Errorf("%s is not comparable", key)
		}
		seen := map[reflect.Type]bool{}
		var look func(path string, typ reflect.Type)
		look = func(path string, typ reflect.Type) {
			if seen[typ] {
				return
			}
			seen[typ] = true
			switch typ.Kind() {
			case reflect.Pointer, reflect.Slice, reflect.Array:
				look(path, typ.Elem())
			case reflect.Map:
				look(path, typ.Elem())
			case reflect.Interface:
				t.Errorf("%s is of no certain type: it can hold anything", path)
			case reflect.Struct:
				if typ == reflect.TypeFor[value.Mesh]() {
					t.Errorf("%s holds the mesh's configuration whole", path)
				}
				for i := range typ.NumField() {
					look(path+"."+typ.Field(i).Name, typ.Field(i).Type)
				}
			}
		}
		look(key.Name(), key)
	}
}

// TestKeysAreListed: keys has every type of the package that is a Key by its name.
func TestKeysAreListed(t *testing.T) {
	listed := []string{}
	for _, k := range keys() {
		listed = append(listed, k.Name())
	}
	files, err := fs.Glob(os.DirFS("."), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !spec.Name.IsExported() {
				return true
			}
			for _, end := range []string{"Key", "Link", "List"} {
				if strings.HasSuffix(spec.Name.Name, end) && !slices.Contains(listed, spec.Name.Name) {
					t.Errorf("%s: keys lacks %s", name, spec.Name.Name)
				}
			}
			return true
		})
	}
}

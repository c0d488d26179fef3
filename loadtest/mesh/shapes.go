package mesh

import (
	"embed"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed shapes/*.yaml
var shapes embed.FS

// Named is the shape of a file in shapes.
func Named(name string) (Shape, error) {
	text, err := shapes.ReadFile("shapes/" + name + ".yaml")
	if err != nil {
		return Shape{}, fmt.Errorf("no shape %q: there are %s", name, strings.Join(Names(), ", "))
	}
	return Parse(text)
}

// Names are the shapes that there are.
func Names() (out []string) {
	files, err := shapes.ReadDir("shapes")
	if err != nil {
		panic(err) // the directory is part of the program
	}
	for _, f := range files {
		out = append(out, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	return out
}

// Parse reads a shape from YAML.
func Parse(text []byte) (Shape, error) {
	var s Shape
	if err := yaml.UnmarshalStrict(text, &s); err != nil {
		return s, err
	}
	if s.Namespaces < 1 || s.Services < 1 || s.Pods < 1 {
		return s, fmt.Errorf("a shape needs namespaces, services and pods")
	}
	return s, nil
}

package mesh

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

//go:embed shapes/*.yaml
var shapes embed.FS

// Find returns the shape of that name, or that of a file of the user's.
func Find(name string) (Shape, error) {
	s, err := Named(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	text, failed := os.ReadFile(name)
	if errors.Is(failed, fs.ErrNotExist) {
		return s, fmt.Errorf("no shape and no file %q: there are %s", name, strings.Join(Names(), ", "))
	}
	if failed != nil {
		return s, failed
	}
	return Parse(name, text)
}

// Named returns the shape of a file in shapes.
func Named(name string) (Shape, error) {
	text, err := shapes.ReadFile("shapes/" + name + ".yaml")
	if err != nil {
		return Shape{}, fmt.Errorf("no shape %q: there are %s (%w)", name, strings.Join(Names(), ", "), fs.ErrNotExist)
	}
	return Parse(name+".yaml", text)
}

// Names returns the shapes that there are.
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

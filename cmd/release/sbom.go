package main

import (
	"encoding/json"
	"runtime/debug"
)

// module is a module that is linked into a program.
type module struct{ Path, Version, Sum string }

// moduleOf returns the module that was really built: the replacement, if go.mod has one.
func moduleOf(d *debug.Module) module {
	if d.Replace != nil {
		d = d.Replace
	}
	return module{d.Path, d.Version, d.Sum}
}

// component is a component in CycloneDX's format.
type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	URL        string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// sbom lists the components of a program in CycloneDX's format, from what the toolchain recorded in the program.
func (r *release) sbom(name, arch string, info *debug.BuildInfo) ([]byte, error) {
	main := goModule("application", module{Path: info.Main.Path, Version: r.version})
	main.Name = name
	main.Properties = []property{{"go:package", info.Path}, {"go:os", "linux"}, {"go:arch", arch},
		{"vcs:commit", r.commit}}
	parts := []component{goModule("library", module{Path: "std", Version: info.GoVersion})}
	for _, d := range info.Deps {
		parts = append(parts, goModule("library", moduleOf(d)))
	}
	return json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata":   map[string]any{"timestamp": r.time.Format("2006-01-02T15:04:05Z"), "component": main},
		"components": parts,
	}, "", " ")
}

func goModule(kind string, m module) component {
	url := "pkg:golang/" + m.Path + "@" + m.Version
	c := component{Type: kind, Ref: url, Name: m.Path, Version: m.Version, URL: url}
	if m.Sum != "" {
		c.Properties = []property{{"go:sum", m.Sum}}
	}
	return c
}

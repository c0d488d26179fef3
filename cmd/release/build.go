package main

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// entry is a file in an archive or an image.
type entry struct {
	name string
	mode int64
	data []byte
}

// build builds the programs for an architecture, and returns them with the licences and a list of components for each.
func (r *release) build(ctx context.Context, work, arch string) ([]entry, error) {
	overlay, err := r.overlay(work)
	if err != nil {
		return nil, err
	}
	env := []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOEXPERIMENT="}
	var files []entry
	modules := map[string]module{}
	for _, p := range r.programs {
		bin := filepath.Join(work, arch, p.name)
		if _, err := r.run(ctx, env, "go", "build", "-trimpath", "-buildvcs=false", "-tags", r.tags, "-ldflags",
			"-s -w -buildid=", "-overlay", overlay, "-o", bin, p.path); err != nil {
			return nil, err
		}
		data, err := os.ReadFile(bin)
		if err != nil {
			return nil, err
		}
		info, err := buildinfo.ReadFile(bin)
		if err != nil {
			return nil, err
		}
		list, err := r.sbom(p.name, arch, info)
		if err != nil {
			return nil, err
		}
		files = append(files, entry{p.name, 0o755, data}, entry{"sbom/" + p.name + ".cdx.json", 0o644, list})
		for _, d := range info.Deps {
			m := moduleOf(d)
			modules[m.Path] = m
		}
	}
	licences, err := r.licences(ctx, modules)
	if err != nil {
		return nil, err
	}
	files = append(files, licences...)
	slices.SortFunc(files, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return files, nil
}

// overlay makes the Go tool use another version.txt in place of the repository's.
func (r *release) overlay(work string) (string, error) {
	source, err := filepath.Abs(r.source)
	if err != nil {
		return "", err
	}
	text := filepath.Join(work, "version.txt")
	if err := os.WriteFile(text, []byte(r.version+" "+r.commit+"\n"), 0o600); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(source, "cmd", "build", "version.txt"): text}})
	if err != nil {
		return "", err
	}
	file := filepath.Join(work, "overlay.json")
	return file, os.WriteFile(file, overlay, 0o600)
}

// licences returns the licences of this module, of Go, and of all modules that are linked in.
func (r *release) licences(ctx context.Context, modules map[string]module) ([]entry, error) {
	text, err := os.ReadFile(filepath.Join(r.source, "LICENSE"))
	if err != nil {
		return nil, err
	}
	out := []entry{{"LICENSE", 0o644, text}}
	root, err := r.run(ctx, nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{"go": strings.TrimSpace(root)}
	names := make([]string, 0, len(modules))
	for name, m := range modules {
		names = append(names, name+"@"+m.Version)
	}
	slices.Sort(names)
	if len(names) > 0 {
		list, err := r.run(ctx, nil, "go", append([]string{"mod", "download", "-json"}, names...)...)
		if err != nil {
			return nil, err
		}
		for d := json.NewDecoder(strings.NewReader(list)); d.More(); {
			var m struct{ Path, Dir string }
			if err := d.Decode(&m); err != nil {
				return nil, err
			}
			dirs[m.Path] = m.Dir
		}
	}
	for name, dir := range dirs {
		found, err := licencesIn(dir, "licenses/"+name+"/")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, found...)
	}
	return out, nil
}

// licencesIn returns the licences at the root of a module.
func licencesIn(dir, as string) (out []entry, err error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range list {
		name := strings.ToUpper(f.Name())
		kind := slices.ContainsFunc([]string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS"}, func(p string) bool {
			return strings.HasPrefix(name, p)
		})
		if f.IsDir() || !kind || path.Ext(name) == ".GO" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		out = append(out, entry{as + f.Name(), 0o644, text})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no licence in %s", dir)
	}
	return out, nil
}

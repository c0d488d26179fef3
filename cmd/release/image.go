package main

import (
	"bytes"
	"io"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is the user id that the image runs as; proxies run as the same one.
const user = "1337"

// builtImage holds the files of the image for one architecture.
type builtImage struct {
	arch  string
	files []entry
}

// image writes the images into a directory in the OCI layout, with one index that lists an image for each architecture.
// An image contains only the first program, the files that belong to it, and its user.
func (r *release) image(dir string, images []builtImage) error {
	index := v1.ImageIndex(mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	for _, b := range images {
		i, err := r.imageOf(b)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: i,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: b.arch}}})
	}
	path, err := layout.Write(dir, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return err
	}
	return path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": r.version}))
}

func (r *release) imageOf(b builtImage) (v1.Image, error) {
	name := r.programs[0].name
	base := []entry{
		{"etc/group", 0o644, []byte("root:x:0:\n" + name + ":x:" + user + ":\n")},
		{"etc/passwd", 0o644, []byte("root:x:0:0:root:/:/sbin/nologin\n" + name + ":x:" + user + ":" + user + "::/:/sbin/nologin\n")},
	}
	var own []entry
	for _, f := range b.files {
		switch {
		case f.name == name:
			own = append(own, entry{"usr/local/bin/" + name, 0o755, f.data})
		case f.name == "sbom/"+name+".cdx.json" || strings.HasPrefix(f.name, "licenses/") || f.name == "LICENSE":
			own = append(own, entry{"usr/share/doc/" + name + "/" + f.name, 0o644, f.data})
		}
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, files := range [][]entry{base, own} {
		layer, err := r.layer(files)
		if err != nil {
			return nil, err
		}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{
			Created: v1.Time{Time: r.time}, CreatedBy: "release"}}); err != nil {
			return nil, err
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", b.arch, v1.Time{Time: r.time}
	config.Config = v1.Config{User: user + ":" + user, Entrypoint: []string{"/usr/local/bin/" + name}, WorkingDir: "/",
		Env: []string{"PATH=/usr/local/bin"}, Labels: map[string]string{
			"org.opencontainers.image.title": name, "org.opencontainers.image.version": r.version,
			"org.opencontainers.image.revision": r.commit, "org.opencontainers.image.licenses": "Apache-2.0"}}
	return mutate.ConfigFile(image, config)
}

func (r *release) layer(files []entry) (v1.Layer, error) {
	var text bytes.Buffer
	if err := writeTar(&text, "", files, r.time); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(text.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}

// Command release makes all files of a release: for each architecture the static programs with their licences and
// components, an image in the OCI layout, the chart, and checksums. It needs no Docker.
//
//	go run ./cmd/release --version v1.2.3 --out DIR
//
// The same commit and the same Go give the same bytes, on any machine and at any time.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// release holds the inputs of a release.
type release struct {
	source  string // the module's root directory
	out     string
	version string // "v1.2.3"
	commit  string
	time    time.Time // the commit's time, used for every file
	// programs are the packages of the programs. The first one goes into the image.
	programs []program
	arches   []string
	tags     string
	chart    string // the chart's directory; empty for none
}

// program is a main package and the name of its program.
type program struct{ name, path string }

func main() {
	r := release{source: ".", tags: "vtprotobuf", chart: "deploy/chart", programs: []program{{"pilotd", "./cmd/pilotd"},
		{"pilotctl", "./cmd/pilotctl"}, {"pilot-agent", "./cmd/pilot-agent"}, {"loadtest", "./loadtest"}}}
	var arches string
	flag.StringVar(&r.version, "version", "", "version; that of git's tag, or of the commit, when empty")
	flag.StringVar(&r.out, "out", "", "directory for the files; made anew")
	flag.StringVar(&arches, "arch", "amd64,arm64", "architectures")
	flag.Parse()
	r.arches = strings.Split(arches, ",")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := r.describe(ctx); err != nil {
		fail(err)
	}
	if r.out == "" {
		fail(fmt.Errorf("--out is required"))
	}
	if err := r.make(ctx); err != nil {
		fail(err)
	}
	fmt.Println(r.out, r.version)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "release:", err)
	os.Exit(1)
}

// describe asks git for the commit.
func (r *release) describe(ctx context.Context) error {
	commit, err := r.run(ctx, nil, "git", "rev-parse", "--short=12", "HEAD")
	if err != nil {
		return err
	}
	r.commit = strings.TrimSpace(commit)
	seconds, err := r.run(ctx, nil, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	at, err := strconv.ParseInt(strings.TrimSpace(seconds), 10, 64)
	if err != nil {
		return err
	}
	r.time = time.Unix(at, 0).UTC()
	if r.version == "" {
		r.version = "v0.0.0-g" + r.commit
		if tag, err := r.run(ctx, nil, "git", "describe", "--tags", "--exact-match", "--match", "v*"); err == nil {
			r.version = strings.TrimSpace(tag)
		}
	}
	changed, err := r.run(ctx, nil, "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" {
		r.version += "-dirty"
	}
	return nil
}

// make makes all files.
func (r *release) make(ctx context.Context) error {
	out, err := filepath.Abs(r.out)
	if err != nil {
		return err
	}
	r.out = out
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	var images []builtImage
	for _, arch := range r.arches {
		files, err := r.build(ctx, work, arch)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("pilotd-%s-linux-%s", r.version, arch)
		if err := r.archive(filepath.Join(r.out, name+".tar.gz"), name+"/", files); err != nil {
			return err
		}
		images = append(images, builtImage{arch, files})
	}
	if err := r.image(filepath.Join(r.out, "image"), images); err != nil {
		return err
	}
	if r.chart != "" {
		if err := r.packChart(); err != nil {
			return err
		}
	}
	return checksums(r.out)
}

// run runs a command in the module's root directory, and returns its output.
func (r *release) run(ctx context.Context, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = r.source, append(os.Environ(), env...)
	var problem strings.Builder
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, problem.String())
	}
	return string(out), nil
}

package file

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	networking "istio.io/client-go/pkg/apis/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/ingest/sinktest"
)

// TestLooksEqualScans does random things to the files of a directory. A source that looks only where something happened
// says what one that scans says, and, as long as no text is broken, what one says that comes fresh.
func TestLooksEqualScans(t *testing.T) {
	looks := 0
	for seed := range uint64(30) {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			h := newHistory(t, dir, seed)
			for step := range 40 {
				h.step()
				h.compare(fmt.Sprintf("seed %d, step %d", seed, step))
			}
			looks += h.looks
		})
	}
	if looks < 30*20 {
		t.Errorf("%d looks: nearly everything needed a scan", looks)
	}
}

// history is a directory to which random things happen, and the sources that read it.
type history struct {
	t      *testing.T
	dir    string
	random *rand.Rand
	broken bool
	looks  int

	inspector, scanner *observed
}

// observed is a source and what it said.
type observed struct {
	*sinktest.Recorder
	source *Source
}

func newObserved(dir string) *observed {
	r := sinktest.New()
	return &observed{r, New(Options{Dir: dir, Sink: r, Log: quiet()})}
}

func unwatchedDir(string, string) {}

// settle goes on from n until nothing is left to do.
func (o *observed) settle(n next) {
	for n.after > 0 {
		time.Sleep(n.after) // Of the bubble's clock.
		if n.scan {
			n = o.source.scan(unwatchedDir)
			continue
		}
		after, ok := o.source.inspect(nil)
		if n = after; !ok {
			n = o.source.scan(unwatchedDir)
		}
	}
}

func newHistory(t *testing.T, dir string, seed uint64) *history {
	h := &history{t: t, dir: dir, random: rand.New(rand.NewPCG(seed, 1)), inspector: newObserved(dir),
		scanner: newObserved(dir)}
	for range 3 {
		h.edit()
	}
	h.inspector.settle(h.inspector.source.scan(unwatchedDir))
	h.scanner.settle(h.scanner.source.scan(unwatchedDir))
	return h
}

// step does something, and lets the one source look at the paths where it happened, the other scan.
func (h *history) step() {
	var paths []string
	for range 1 + h.random.IntN(3) {
		paths = append(paths, h.edit()...)
	}
	n, ok := h.inspector.source.inspect(paths)
	if h.looks++; !ok {
		h.looks--
		n = h.inspector.source.scan(unwatchedDir)
	}
	h.inspector.settle(n)
	h.scanner.settle(h.scanner.source.scan(unwatchedDir))
}

func (h *history) pick(from ...string) string { return from[h.random.IntN(len(from))] }

func (h *history) file() string {
	return filepath.Join(h.dir, h.pick(".", ".", ".", "sub", "sub.yaml"), h.pick("a.yaml", "b.yaml", "c.yml", "d.json",
		".e.yaml", "notes.txt", "x"))
}

// edit does one thing, and says where.
func (h *history) edit() []string {
	path, other := h.file(), h.file()
	switch h.random.IntN(12) {
	case 0:
		_ = os.Remove(path)
	case 1:
		_ = os.Rename(path, other)
		return []string{path, other}
	case 2:
		_ = os.RemoveAll(filepath.Join(h.dir, h.pick("sub", "sub.yaml")))
		return []string{filepath.Join(h.dir, "sub"), filepath.Join(h.dir, "sub.yaml")}
	case 3:
		_ = os.Rename(filepath.Join(h.dir, "sub"), filepath.Join(h.dir, "sub.yaml"))
		return []string{filepath.Join(h.dir, "sub"), filepath.Join(h.dir, "sub.yaml")}
	case 4:
		if h.random.IntN(8) == 0 {
			_ = os.Symlink(filepath.Base(other), path)
		}
	default:
		at := filepath.Dir(path)
		if _, err := os.Lstat(at); err != nil {
			_ = os.Mkdir(at, 0o755)
			_ = os.WriteFile(path, []byte(h.text()), 0o644)
			return []string{at, path}
		}
		_ = os.WriteFile(path, []byte(h.text()), 0o644)
	}
	return []string{path}
}

// text returns the content of a file: some objects, perhaps one that does not decode, perhaps no YAML.
func (h *history) text() string {
	var docs []string
	for range h.random.IntN(4) {
		doc := vs(h.pick("one", "two", "three", "four"), h.pick("a.com", "b.com"))
		if h.random.IntN(4) == 0 {
			doc = "\n# moved\n" + doc
		}
		if h.random.IntN(12) == 0 {
			h.broken, doc = true, strings.Replace(doc, "- route:", "- rout:", 1)
		}
		docs = append(docs, doc)
	}
	if h.random.IntN(12) == 0 {
		h.broken, docs = true, append(docs, "kind: [")
	}
	return strings.Join(docs, "---\n")
}

func (h *history) compare(when string) {
	h.t.Helper()
	want := h.scanner.state()
	if got := h.inspector.state(); !slices.Equal(got, want) {
		h.t.Fatalf("%s: looking:\n%s\nscanning:\n%s", when, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if h.broken {
		return
	}
	fresh := newObserved(h.dir)
	fresh.settle(fresh.source.scan(unwatchedDir))
	if got := fresh.state(); !slices.Equal(got, want) {
		h.t.Fatalf("%s: fresh:\n%s\nscanning:\n%s", when, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// state returns what the sink has: each object with the file that it is of and its rank by age, and what is refused. A
// line may be of before the object moved in its file.
func (o *observed) state() (out []string) {
	now := o.Now()
	ages := map[int64]bool{}
	age := func(e ingest.Event) int64 { return e.Object.(meta.Object).GetCreationTimestamp().Unix() }
	for _, e := range now.Objects {
		ages[age(e)] = true
	}
	ranks := sortedKeys(ages)
	for key, e := range now.Objects {
		path, _, _ := strings.Cut(e.Where, ":")
		out = append(out, fmt.Sprintf("%v of %s, rank %d: %v", key, path, slices.Index(ranks, age(e)),
			e.Object.(*networking.VirtualService).Spec.Hosts))
	}
	for _, place := range sortedKeys(now.Rejected) {
		out = append(out, fmt.Sprintf("%s: %v", place, now.Rejected[place]))
	}
	slices.Sort(out)
	return out
}

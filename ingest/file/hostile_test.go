package file

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotd/pilotd/ingest/sinktest"
)

// hostileTexts returns contents that would cost much if they were believed.
func hostileTexts() map[string]string {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1,
			c-1, c-1)
	}
	deep := strings.Repeat("[", 100_000)
	return map[string]string{
		"alias bomb.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: x}\n" + bomb,
		"merge bomb.yaml": "a: &a {x: 1}\n" + strings.ReplaceAll(bomb[len("a: &a [x,x,x,x,x,x,x,x,x]\n"):], "[",
			"[<<, ") + "y: {<<: *a}\n",
		"itself.yaml":     "a: &a\n  b: *a\n",
		"deep flow.yaml":  deep,
		"deep block.yaml": strings.Repeat("- ", 50_000) + "x\n",
		"deep map.yaml": "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: x}\nspec: " +
			strings.Repeat("{http: ", 20_000) + "1" + strings.Repeat("}", 20_000) + "\n",
		"deep.json":           strings.Repeat(`{"a":`, 100_000),
		"many documents.yaml": strings.Repeat("---\na\n", maxDocuments+1),
		"many items.json": `{"apiVersion":"v1","kind":"List","items":[` + strings.Repeat("{},", maxDocuments) +
			`{}]}`,
		"many problems.json": `{"apiVersion":"v1","kind":"List","items":[` + strings.Repeat("{},", 2000) + `{}]}`,
		"zeros.yaml":         strings.Repeat("\x00", 1000),
		"no UTF-8.yaml":      "kind: \xff\xfe",
		"long line.yaml":     "# " + strings.Repeat("x", 1<<20),
		"large.yaml": "kind: Service\napiVersion: v1\nmetadata: {name: x}\nx: \"" + strings.Repeat("x",
			maxDocument) + "\"\n",
		"keys.yaml": strings.Repeat("? ", 10_000) + "x\n",
	}
}

// Texts that mean harm take limited time, hurt nothing else, and are told of.
func TestHostileTextsHurtOnlyThemselves(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "good.yaml"), vs("a", "a.com"))
	for name, text := range hostileTexts() {
		write(t, filepath.Join(dir, name), text)
	}
	began := time.Now()
	r := start(t, dir)
	if took := time.Since(began); took > time.Minute {
		t.Errorf("took %v", took)
	}
	told := r.Now()
	if len(told.Objects) != 1 || host(told, "a") != "a.com" {
		t.Errorf("have %d objects", len(told.Objects))
	}
	for name := range hostileTexts() {
		problems := told.Rejected[filepath.Join(dir, name)]
		if len(problems) > maxProblems+1 || len(problems) == 0 && name != "zeros.yaml" && name != "long line.yaml" {
			t.Errorf("%s: %d problems", name, len(problems))
		}
	}
}

// What is no readable file in a directory keeps nobody from reading the others, and what was read before stays.
func TestOddFilesHurtOnlyThemselves(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write(t, path("good.yaml"), vs("good", "good.com"))
	write(t, path("becomes-pipe.yaml"), vs("a", "a.com"))
	write(t, path("becomes-loop.yaml"), vs("b", "b.com"))
	write(t, path("becomes-large.yaml"), vs("c", "c.com"))
	for link, to := range map[string]string{"dangling.yaml": "nowhere", "loop.yaml": "loop.yaml", "up": "..",
		"self": "."} {
		if err := os.Symlink(to, path(link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(path("pipe.yaml"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := start(t, dir)
	if n := len(r.Now().Objects); n != 4 {
		t.Fatalf("%d objects", n)
	}
	if err := os.Symlink("becomes-loop.yaml", path("tmp")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path("tmp"), path("becomes-loop.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path("becomes-large.yaml"), maxFile+1); err != nil {
		t.Fatal(err)
	}
	r.Until(t, "the reports", func(told *sinktest.Told) bool {
		return len(told.Rejected[path("becomes-loop.yaml")]) == 1 && len(told.Rejected[path("becomes-large.yaml")]) == 1
	})
	write(t, path("good.yaml"), vs("good", "good2.com"))
	r.Until(t, "an edit of the good one", hosts("good", "good2.com"))
	told := r.Now()
	if host(told, "b") != "b.com" || host(told, "c") != "c.com" {
		t.Errorf("what was read before is gone: %v", told.Objects)
	}
	var s settling
	if _, finished, err := s.read(path("pipe.yaml"), time.Now(), false); !finished || err == nil {
		t.Errorf("a pipe was read: %v, %v", finished, err)
	}
}

// Directories that lead into each other by links, in every way there is, are walked for a limited time, and nothing
// that was read is lost.
func TestLinksThatMultiplyAreBounded(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), vs("a", "a.com"))
	synctest.Test(t, func(t *testing.T) {
		o := newObserved(dir)
		o.settle(o.source.scan(unwatchedDir))
		const n = 12
		for i := range n {
			for j := range n {
				d := filepath.Join(dir, fmt.Sprint("d", i))
				_ = os.MkdirAll(d, 0o755)
				if i != j {
					_ = os.Symlink(fmt.Sprintf("../d%d", j), filepath.Join(d, fmt.Sprint("l", j)))
				}
			}
		}
		o.source.scan(unwatchedDir)
		if told := o.Now(); host(told, "a") != "a.com" || len(told.Rejected) == 0 {
			t.Errorf("have %v, %d places rejected", told.Objects, len(told.Rejected))
		}
	})
}

// The directory itself goes and comes back: what it had stays in force meanwhile.
func TestADirectoryThatVanishesKeepsItsObjects(t *testing.T) {
	root := filepath.Join(t.TempDir(), "dir")
	write(t, filepath.Join(root, "a.yaml"), vs("a", "a.com"))
	r := start(t, root)
	if err := os.Rename(root, root+"2"); err != nil {
		t.Fatal(err)
	}
	r.Until(t, "the report", func(told *sinktest.Told) bool { return len(told.Rejected[root]) == 1 })
	if host(r.Now(), "a") != "a.com" {
		t.Error("the object is gone with its directory")
	}
	write(t, filepath.Join(root, "a.yaml"), vs("a", "a2.com"))
	r.Until(t, "its return", func(told *sinktest.Told) bool {
		return host(told, "a") == "a2.com" &&
			len(told.Rejected) == 0
	})
}

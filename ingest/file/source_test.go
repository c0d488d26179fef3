package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/ingest/sinktest"
)

func TestFirstScanIsOneApply(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), vs("a", "a.com")+"---\n"+vs("b", "b.com"))
	write(t, filepath.Join(dir, "deep", "er", "c.yml"), vs("c", "c.com"))
	write(t, filepath.Join(dir, "notes.txt"), "no object")
	write(t, filepath.Join(dir, ".hidden.yaml"), vs("d", "d.com"))
	r := start(t, dir)
	told := r.Now()
	if len(told.Applies) != 1 || len(told.Objects) != 3 {
		t.Fatalf("applied %d times, %v", len(told.Applies), told.Objects)
	}
	if got, want := told.Objects[virtualService("b")].Where, filepath.Join(dir, "a.yaml")+":12"; got != want {
		t.Errorf("b is at %s, want %s", got, want)
	}
}

func TestEditsReachTheSink(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	write(t, path, vs("a", "a.com")+"---\n"+vs("b", "b.com"))
	r := start(t, dir)

	write(t, path, vs("a", "a2.com")+"---\n"+vs("b", "b.com"))
	r.Until(t, "the edit", hosts("a", "a2.com"))
	told := r.Now()
	if last := told.Applies[len(told.Applies)-1]; len(last) != 1 {
		t.Errorf("an edit of one object sent %d", len(last))
	}

	write(t, filepath.Join(dir, "new", "dir", "c.yaml"), vs("c", "c.com"))
	r.Until(t, "a file in a new directory", hosts("c", "c.com"))
	write(t, filepath.Join(dir, "new", "dir", "c.yaml"), vs("c", "c2.com"))
	r.Until(t, "its edit", hosts("c", "c2.com"))

	if err := os.RemoveAll(filepath.Join(dir, "new")); err != nil {
		t.Fatal(err)
	}
	r.Until(t, "its removal", hosts("c", ""))
	write(t, filepath.Join(dir, "new", "dir", "c.yaml"), vs("c", "c3.com"))
	r.Until(t, "its return", hosts("c", "c3.com"))
	write(t, filepath.Join(dir, "new", "dir", "c.yaml"), vs("c", "c4.com"))
	r.Until(t, "an edit in the directory that returned", hosts("c", "c4.com"))
}

func TestWhatDoesNotParseKeepsTheLastGoodState(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	write(t, path, vs("a", "a.com")+"---\n"+vs("b", "b.com"))
	r := start(t, dir)

	write(t, path, vs("a", "a2.com")+"---\nkind: [\n"+vs("b", "b.com"))
	r.Until(t, "the report", func(told *sinktest.Told) bool { return len(told.Rejected[path]) == 1 })
	told := r.Now()
	if b := told.Rejected[path][0]; !strings.HasPrefix(b.Where, path+":1") ||
		!strings.Contains(b.Reason, "not valid YAML") {
		t.Errorf("reported %+v", b)
	}
	if len(told.Applies) != 1 {
		t.Errorf("part of a broken file was applied: %v", told.Applies[1:])
	}
	write(t, path, vs("a", "a3.com")+"---\n"+vs("b", "b.com"))
	r.Until(t, "the repair", func(told *sinktest.Told) bool {
		return host(told, "a") == "a3.com" &&
			len(told.Rejected) == 0
	})
}

func TestAnObjectThatDoesNotDecodeKeepsItsLastGoodVersion(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	write(t, path, vs("a", "a.com")+"---\n"+vs("b", "b.com"))
	r := start(t, dir)
	bad := strings.Replace(vs("a", "a2.com"), "- route:", "- rout:", 1)
	write(t, path, bad+"---\n"+vs("b", "b2.com"))
	r.Until(t, "the neighbour's edit", hosts("b", "b2.com"))
	told := r.Now()
	if b := told.Rejected[path]; len(b) != 1 || b[0].Field != "spec.http[0].rout" || b[0].Where != path+":8" ||
		b[0].Key != virtualService("a") {
		t.Errorf("reported %+v", b)
	}
	if host(told, "a") != "a.com" {
		t.Errorf("a has host %q", host(told, "a"))
	}
}

func TestFirstFileWinsAnObjectDefinedTwice(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")
	write(t, second, vs("x", "second.com"))
	r := start(t, dir)
	write(t, first, "\n"+vs("x", "first.com"))
	r.Until(t, "the first file's version", func(told *sinktest.Told) bool {
		return host(told, "x") == "first.com" && len(told.Rejected[second]) == 1
	})
	told := r.Now()
	if b := told.Rejected[second][0]; b.Where != second+":1" || !strings.Contains(b.Reason, first+":2") {
		t.Errorf("reported %+v", b)
	}
	if err := os.Remove(first); err != nil {
		t.Fatal(err)
	}
	r.Until(t, "the second file's version", func(told *sinktest.Told) bool {
		return host(told, "x") == "second.com" &&
			len(told.Rejected) == 0
	})
}

func TestConfigMapMount(t *testing.T) {
	dir := t.TempDir()
	mount := func(version, host string) {
		write(t, filepath.Join(dir, version, "a.yaml"), vs("a", host))
		if err := os.Symlink(version, filepath.Join(dir, "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	mount("..1", "a1.com")
	if err := os.Symlink(filepath.Join("..data", "a.yaml"), filepath.Join(dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	r := start(t, dir)
	for _, version := range []string{"2", "3", "4"} {
		mount(".."+version, "a"+version+".com")
		r.Until(t, "version "+version, hosts("a", "a"+version+".com"))
	}
	told := r.Now()
	if len(told.Applies) != 4 || len(told.Objects) != 1 {
		t.Errorf("applied %d times: %v", len(told.Applies), told.Applies)
	}
}

func TestRootIsASymlinkThatIsSwapped(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "current")
	write(t, filepath.Join(dir, "v1", "a.yaml"), vs("a", "a1.com"))
	write(t, filepath.Join(dir, "v2", "a.yaml"), vs("a", "a2.com"))
	if err := os.Symlink("v1", root); err != nil {
		t.Fatal(err)
	}
	r := start(t, root)
	if err := os.Symlink("v2", filepath.Join(dir, "tmp")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "tmp"), root); err != nil {
		t.Fatal(err)
	}
	r.Until(t, "the new version", hosts("a", "a2.com"))
	write(t, filepath.Join(dir, "v2", "a.yaml"), vs("a", "a3.com"))
	r.Until(t, "an edit of it", hosts("a", "a3.com"))
}

func TestDirectoryThatComesLater(t *testing.T) {
	root := filepath.Join(t.TempDir(), "later")
	r := sinktest.New()
	follows(t, New(Options{Dir: root, Sink: r, Log: quiet()}).Run)
	r.Until(t, "the report", func(told *sinktest.Told) bool { return len(told.Rejected) == 1 })
	told := r.Now()
	if synced(told) {
		t.Error("synced with nothing")
	}
	write(t, filepath.Join(root, "a.yaml"), vs("a", "a.com"))
	r.Until(t, "the object", func(told *sinktest.Told) bool {
		return host(told, "a") == "a.com" && synced(told) && len(told.Rejected) == 0
	})
}

func TestEditorsReplaceFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	write(t, path, vs("a", "a1.com"))
	r := start(t, dir)
	// vim: the old file is moved away, then the new one is written.
	if err := os.Rename(path, path+"~"); err != nil {
		t.Fatal(err)
	}
	write(t, path, vs("a", "a2.com"))
	r.Until(t, "the second version", hosts("a", "a2.com"))
	// Others: the new one is written aside and moved over.
	write(t, filepath.Join(dir, ".a.tmp"), vs("a", "a3.com"))
	if err := os.Rename(filepath.Join(dir, ".a.tmp"), path); err != nil {
		t.Fatal(err)
	}
	r.Until(t, "the third version", hosts("a", "a3.com"))
	told := r.Now()
	for _, events := range told.Applies {
		for _, e := range events {
			if e.Object == nil {
				t.Errorf("the object was deleted meanwhile: %v", e)
			}
		}
	}
}

func TestAFileBeingWrittenIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	write(t, path, vs("a", "a1.com")+"---\n"+vs("b", "b1.com"))
	r := start(t, dir)
	f, err := os.Create(path) // truncates
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if writing, known := leased(mustOpen(t, path), func() {}); !known || !writing {
		t.Skip("the system does not tell who writes")
	}
	// Half of the file, then a change elsewhere that makes the source look.
	if _, err := f.WriteString(vs("a", "a2.com")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "c.yaml"), vs("c", "c.com"))
	r.Until(t, "the other file", hosts("c", "c.com"))
	told := r.Now()
	if host(told, "a") != "a1.com" || host(told, "b") != "b1.com" {
		t.Fatalf("half a file is in force: %v", told.Objects)
	}
	if _, err := f.WriteString("---\n" + vs("b", "b2.com")); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	r.Until(t, "the whole file", func(told *sinktest.Told) bool {
		return host(told, "a") == "a2.com" &&
			host(told, "b") == "b2.com"
	})
	told = r.Now()
	if last := told.Applies[len(told.Applies)-1]; len(last) != 2 {
		t.Errorf("the file was applied in pieces: %v", told.Applies)
	}
}

func mustOpen(t *testing.T, path string) *os.File {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// The file becomes a link to itself, which not even root reads.
func TestAFileThatCannotBeReadKeepsItsObjects(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	write(t, path, vs("a", "a.com"))
	r := start(t, dir)
	if err := os.Symlink("a.yaml", path+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	r.Until(t, "the report", func(told *sinktest.Told) bool { return len(told.Rejected[path]) == 1 })
	write(t, filepath.Join(dir, "b.yaml"), vs("b", "b.com"))
	r.Until(t, "the neighbour", hosts("b", "b.com"))
	told := r.Now()
	if host(told, "a") != "a.com" {
		t.Error("the object is gone")
	}
	if b := told.Rejected[path]; len(b) != 1 || !strings.Contains(b[0].Reason, "cannot be read") {
		t.Errorf("what is told of the file: %+v", b)
	}
}

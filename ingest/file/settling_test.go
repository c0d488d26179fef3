package file

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotd/pilotd/ingest/sinktest"
)

// blindly runs a test on a source that the system does not tell who writes: the files are another user's. It runs in
// a bubble: time passes at once when all wait for it.
func blindly(t *testing.T, f func(t *testing.T, dir string, o *observed)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		o := newObserved(dir)
		o.source.blind = true
		f(t, dir, o)
	})
}

// pass lets time pass, with a look whenever the source wants one.
func (o *observed) pass(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		o.source.scan(unwatchedDir)
	}
	o.source.scan(unwatchedDir)
}

func documents(names ...string) string {
	var docs []string
	for _, n := range names {
		docs = append(docs, vs(n, n+".com"))
	}
	return strings.Join(docs, "---\n")
}

func add(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// counts returns how many objects were in force after each Apply.
func counts(told *sinktest.Told) (out []int) {
	n := 0
	for _, events := range told.Applies {
		for _, e := range events {
			if e.Object == nil {
				n--
			} else {
				n++
			}
		}
		out = append(out, n)
	}
	return out
}

// A file that is written anew in place, in pieces that are whole documents, is taken when it is whole: what it had does
// not go meanwhile.
func TestAFileOfAnotherUserIsNotTakenHalf(t *testing.T) {
	blindly(t, func(t *testing.T, dir string, o *observed) {
		path := filepath.Join(dir, "a.yaml")
		ten := strings.Split("a b c d e f g h i j", " ")
		write(t, path, documents(ten...))
		o.pass(3 * time.Second)
		if n := len(o.Now().Objects); n != 10 {
			t.Fatalf("%d objects", n)
		}
		write(t, path, documents(ten[:5]...))
		o.pass(500 * time.Millisecond)
		if n := len(o.Now().Objects); n != 10 {
			t.Fatalf("%d objects while the file is written", n)
		}
		add(t, path, "---\n"+documents(append(ten[5:], "k")...))
		o.pass(300 * time.Millisecond)
		if n := len(o.Now().Objects); n != 11 {
			t.Fatalf("%d objects when the file was whole", n)
		}
		if n := len(o.Now().Applies); n != 2 {
			t.Errorf("applied %d times: %v", n, counts(o.Now()))
		}
	})
}

// What a change in place costs in time, by what it looks like.
func TestHowLongAChangeInPlaceTakes(t *testing.T) {
	blindly(t, func(t *testing.T, dir string, o *observed) {
		path := filepath.Join(dir, "a.yaml")
		slack := 10 * time.Millisecond
		takes := func(what, text string, least time.Duration, done func(*sinktest.Told) bool) {
			t.Helper()
			write(t, path, text)
			began := time.Now()
			for !done(o.Now()) && time.Since(began) < 10*time.Second {
				o.source.scan(unwatchedDir)
				time.Sleep(time.Millisecond)
			}
			if took := time.Since(began); took < least || took > least+slack {
				t.Errorf("%s took %v, want %v to %v", what, took, least, least+slack)
			}
		}
		takes("the first text", documents("a", "b"), rest, hosts("b", "b.com"))
		takes("an edit", documents("a", "b")+"---\n"+vs("c", "c.com"), rest, hosts("c", "c.com"))
		takes("a removal", documents("a", "c"), patience, hosts("b", ""))
		takes("a text without an end", strings.TrimSuffix(documents("a", "c", "d"), "\n"), patience,
			hosts("d", "d.com"))
		takes("a broken text", documents("a", "c")+"---\nkind: [\n", patience,
			func(told *sinktest.Told) bool { return len(told.Rejected[path]) == 1 })
		takes("an empty file", "", patience, hosts("a", ""))
	})
}

// A file that is renamed to its place when it is whole is read at once.
func TestARenamedFileOfAnotherUserIsReadAtOnce(t *testing.T) {
	blindly(t, func(t *testing.T, dir string, o *observed) {
		path, aside := filepath.Join(dir, "a.yaml"), filepath.Join(dir, ".a.tmp")
		for i, text := range []string{documents("a", "b"), documents("a", "c"), documents("c")} {
			write(t, aside, text)
			// As rsync does; without it the rename has to fall into another tick of the clock.
			past := time.Unix(1_600_000_000+int64(i), 0)
			if err := os.Chtimes(aside, past, past); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(aside, path); err != nil {
				t.Fatal(err)
			}
			o.source.scan(unwatchedDir)
			if got := len(o.Now().Applies); got != i+1 {
				t.Fatalf("version %d: applied %d times", i, got)
			}
		}
		if told := o.Now(); host(told, "c") != "c.com" || len(told.Objects) != 1 {
			t.Errorf("have %v", told.Objects)
		}
	})
}

// The wall clock has no say: a file whose times lie in the future, or far in the past, or that was changed with its
// time set back, is read.
func TestTimesOfFilesMayBeAnything(t *testing.T) {
	blindly(t, func(t *testing.T, dir string, o *observed) {
		path := filepath.Join(dir, "a.yaml")
		for i, at := range []time.Time{time.Unix(1, 0), time.Unix(9_000_000_000, 0), time.Unix(1_600_000_000, 0),
			time.Unix(1_600_000_000, 0)} {
			want := fmt.Sprintf("a%d.com", i)
			write(t, path, vs("a", want))
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
			o.pass(5 * time.Second)
			if got := host(o.Now(), "a"); got != want {
				t.Errorf("times of %v: have %q, want %q", at, got, want)
			}
		}
	})
}

// However a file is replaced, its objects never go meanwhile, and the new text comes into force.
func TestWaysToReplaceAFile(t *testing.T) {
	ways := map[string]string{
		"sed -i":                "sed -i s/OLD/NEW/g a.yaml",
		"cp":                    "cp new a.yaml",
		"cp -p":                 "cp -p new a.yaml",
		"mv":                    "cp new .tmp && mv .tmp a.yaml",
		"tar, as kubectl cp":    "mkdir x && cp new x/a.yaml && tar -C x -cf - a.yaml | tar -xf - && rm -r x",
		"vim":                   "mv a.yaml a.yaml~ && cat new > a.yaml && rm a.yaml~",
		"vim, backupcopy=yes":   "cp a.yaml a.yaml~ && cat new > a.yaml && rm a.yaml~",
		"shell":                 "cat new > a.yaml",
		"rsync":                 "cp -p new .a.yaml.X1 && touch -d 2020-01-01 .a.yaml.X1 && mv .a.yaml.X1 a.yaml",
		"removed and made anew": "rm a.yaml && cat new > a.yaml",
		"link":                  "cp new .n && ln -sf .n a.yaml",
	}
	for name, script := range ways {
		for _, blind := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/blind=%v", name, blind), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				old := documents("a", "b", "c") + "---\n" + vs("x", "OLD.com")
				next := strings.ReplaceAll(old, "OLD", "NEW")
				write(t, filepath.Join(dir, "a.yaml"), old)
				write(t, filepath.Join(dir, "new"), next)
				r := sinktest.New()
				s := New(Options{Dir: dir, Sink: r, Log: quiet()})
				s.blind = blind
				follows(t, s.Run)
				r.Until(t, "sync", synced)
				cmd := exec.Command("sh", "-c", script)
				cmd.Dir = dir
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				r.Until(t, "the new text", hosts("x", "NEW.com"))
				for _, events := range r.Now().Applies {
					for _, e := range events {
						if e.Object == nil {
							t.Errorf("%v went meanwhile", e.Key)
						}
					}
				}
			})
		}
	}
}

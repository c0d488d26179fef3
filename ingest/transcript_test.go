package ingest

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write what the Store says into the transcripts")

func testLog(testing.TB) *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// TestTranscripts runs each testdata file: every archive member "SOURCE/…" is one Apply of that source's objects; the
// member "says" after it is what the Builder got, and what stands refused.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { transcript(t, file) })
	}
}

func transcript(t *testing.T, file string) {
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	k := newKeeper()
	s := NewStore(k, quiet(t), "kube", "dir")
	s.Synced("kube")
	s.Synced("dir")
	for i := range a.Files {
		f := &a.Files[i]
		if f.Name != "says" {
			k.batches = nil
			source, _, _ := strings.Cut(f.Name, "/")
			s.Apply(decode(t, source, string(f.Data)))
			continue
		}
		got := said(k, s)
		if *update {
			f.Data = []byte(got)
		} else if want := string(f.Data); got != want {
			t.Errorf("%s: after %s\n--- got\n%s--- want\n%s", file, a.Files[i-1].Name, got, want)
		}
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func said(k *keeper, s *Store) string {
	var b strings.Builder
	for i, batch := range k.batches {
		if i > 0 {
			b.WriteString("and then\n")
		}
		for _, line := range lines(batch) {
			b.WriteString(line + "\n")
		}
	}
	for _, r := range s.Rejections() {
		fmt.Fprintf(&b, "refused %s %s: %s: %s\n", r.Source, r.Key, r.Field, r.Reason)
	}
	return b.String()
}

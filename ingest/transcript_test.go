package ingest

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/transcript"
)

var update = flag.Bool("update", false, "write what the Store says into the transcripts")

func testLog(testing.TB) *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// TestTranscripts runs each testdata file: every archive member "SOURCE/…" is one Apply of that source's objects; the
// member "says" after it is what the Builder got, and what stands refused.
func TestTranscripts(t *testing.T) {
	transcript.Each(t, "testdata/*.txtar", runTranscript)
}

func runTranscript(t *testing.T, a *transcript.File) {
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
			t.Errorf("after %s\n--- got\n%s--- want\n%s", a.Files[i-1].Name, got, want)
		}
	}
	if *update {
		a.Write(t)
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

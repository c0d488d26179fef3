package file

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/ingest"
)

// nobody is a Sink that does nothing.
type nobody struct{}

func (nobody) Apply([]ingest.Event)    {}
func (nobody) Reject(ingest.Rejection) {}
func (nobody) Accept(string, string)   {}
func (nobody) Synced(string)           {}

// One edit among 10,000 objects, in one file and in 1,000.
func BenchmarkEdit(b *testing.B) {
	for _, files := range []int{1, 1000} {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			dir := b.TempDir()
			text := func(file, edit int) string {
				var t strings.Builder
				for i := range 10000 / files {
					t.WriteString("---\n" + vs(fmt.Sprintf("v-%d-%d", file, i), "h.com"))
				}
				return t.String() + "---\n" + vs(fmt.Sprintf("edited-%d", file), fmt.Sprintf("h%d.com", edit))
			}
			path := func(i int) string { return filepath.Join(dir, fmt.Sprintf("f%d.yaml", i)) }
			for i := range files {
				write(b, path(i), text(i, 0))
			}
			s := New(Options{Dir: dir, Sink: nobody{}, Log: quiet()})
			s.scan(func(string, string) {})
			edit := 0
			for b.Loop() {
				edit++
				b.StopTimer()
				write(b, path(0), text(0, edit))
				b.StartTimer()
				if _, ok := s.inspect([]string{path(0)}); !ok {
					b.Fatal("an edit asks for a scan")
				}
			}
		})
	}
}

// From the moment at which a file of one object of 10,000 is replaced, to the call of the Sink.
func BenchmarkLatency(b *testing.B) {
	dir := b.TempDir()
	path := func(i int) string { return filepath.Join(dir, fmt.Sprintf("f%d.yaml", i)) }
	for i := range 10000 {
		write(b, path(i), vs(fmt.Sprintf("v-%d", i), "h.com"))
	}
	told := make(sinkOfCalls, 1)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- New(Options{Dir: dir, Sink: told, Log: quiet()}).Run(ctx) }()
	<-told
	edit := 0
	for b.Loop() {
		edit++
		b.StopTimer()
		write(b, path(0)+".new", vs("v-0", fmt.Sprintf("h%d.com", edit)))
		b.StartTimer()
		if err := os.Rename(path(0)+".new", path(0)); err != nil {
			b.Fatal(err)
		}
		<-told
	}
	cancel()
	<-done
}

// sinkOfCalls is told of every Apply.
type sinkOfCalls chan struct{}

func (s sinkOfCalls) Apply([]ingest.Event)  { s <- struct{}{} }
func (sinkOfCalls) Reject(ingest.Rejection) {}
func (sinkOfCalls) Accept(string, string)   {}
func (sinkOfCalls) Synced(string)           {}

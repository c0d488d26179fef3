package inject

import (
	"testing"

	"golang.org/x/tools/txtar"
)

// BenchmarkInject injects one pod: into the patch that an API server gets.
func BenchmarkInject(b *testing.B) {
	archive, err := txtar.ParseFile("testdata/pods/probes.txtar")
	if err != nil {
		b.Fatal(err)
	}
	in, pod := newInjector(b, settings(b)), podFrom(b, archive.Files[0].Data)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := in.Inject(Request{Pod: pod}); err != nil {
			b.Fatal(err)
		}
	}
}

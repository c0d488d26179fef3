package ads

import (
	"testing"
	"unsafe"
)

// A Session is what a proxy costs beside its connection (8 KiB in all, docs/benchmarks.md).
func TestSessionIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Session{}); size > 1200 {
		t.Errorf("a Session has %d bytes", size)
	}
	t.Log(unsafe.Sizeof(Session{}), unsafe.Sizeof(state{}), unsafe.Sizeof(record{}), unsafe.Sizeof(flight{}))
}

package admission

import (
	"bytes"
	"container/list"
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"github.com/pilotd/pilotd/inject"
)

const (
	// keptBytes is how many bytes of patches are kept: those of some 2,000 workloads.
	keptBytes = 16 << 20
	// keptPatch is how large a patch may be that is kept.
	keptPatch = 256 << 10
	// keptBeside is what is reckoned for all that is kept with a patch.
	keptBeside = 1 << 10
)

// answerKey stands for a pod, as alike has it, with its namespace and the path that was asked: SHA-256 of all bytes.
type answerKey [sha256.Size]byte

func keyOf(a *alike, namespace, path string) (key answerKey) {
	h := sha256.New()
	var lengths [16]byte
	binary.BigEndian.PutUint64(lengths[:], uint64(len(namespace)))
	binary.BigEndian.PutUint64(lengths[8:], uint64(len(path)))
	h.Write(lengths[:])
	h.Write([]byte(namespace))
	h.Write([]byte(path))
	h.Write(a.text)
	h.Sum(key[:0])
	return key
}

// answer is what injection made of a pod.
type answer struct {
	key answerKey
	// patch is cut where the name of the volume of the service account goes.
	patch    [][]byte
	warnings []string
	skipped  string // why the pod is not injected
	// around is what the answer holds for: where something else is known, another one has to be made.
	around around
	size   int
}

// patchFor returns the patch for a pod; of is nil for the very pod that it was made of.
func (a *answer) patchFor(of *alike) []byte {
	if len(a.patch) == 1 {
		return a.patch[0]
	}
	if of == nil || of.name == nil {
		return bytes.Join(a.patch, []byte(commonName))
	}
	return bytes.Join(a.patch, of.name)
}

// answers keeps what was made last of pods, so that a workload's next pod need not be injected anew. It is bounded in
// bytes; what was asked for longest ago goes first. What one Injector made is forgotten when another one is asked for:
// new settings. Safe for concurrent use.
type answers struct {
	mu sync.Mutex
	// Guarded by mu.
	of    *inject.Injector
	byKey map[answerKey]*list.Element // of used
	used  *list.List                  // of *answer, the last one that was asked for first
	bytes int
}

func newAnswers() *answers {
	return &answers{byKey: map[answerKey]*list.Element{}, used: list.New()}
}

// get returns what an Injector made of a pod, or nil.
func (a *answers) get(in *inject.Injector, key answerKey) *answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turnTo(in)
	e := a.byKey[key]
	if e == nil {
		return nil
	}
	a.used.MoveToFront(e)
	return e.Value.(*answer)
}

// put keeps what an Injector made of a pod, instead of what was kept of it.
func (a *answers) put(in *inject.Injector, made *answer) {
	made.size = keptBeside
	for _, piece := range made.patch {
		made.size += len(piece)
	}
	for _, w := range made.warnings {
		made.size += len(w)
	}
	if made.size > keptPatch {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turnTo(in)
	a.drop(a.byKey[made.key])
	a.byKey[made.key] = a.used.PushFront(made)
	a.bytes += made.size
	for a.bytes > keptBytes {
		a.drop(a.used.Back())
	}
}

// size returns how many bytes are kept.
func (a *answers) size() float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return float64(a.bytes)
}

// turnTo forgets what another Injector made; the caller holds mu.
func (a *answers) turnTo(in *inject.Injector) {
	if a.of != in {
		a.of, a.bytes = in, 0
		clear(a.byKey)
		a.used.Init()
	}
}

// drop forgets one answer, if there is one; the caller holds mu.
func (a *answers) drop(e *list.Element) {
	if e == nil {
		return
	}
	gone := a.used.Remove(e).(*answer)
	delete(a.byKey, gone.key)
	a.bytes -= gone.size
}

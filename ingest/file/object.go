package file

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/snapshot/value"
)

// object is one object and its place in the file.
type object struct {
	key   value.ObjectKey
	typed any
	path  string
	line  int
}

// aged returns the object that the source sends. An object without a creation time gets one that grows with its file's
// place in path order, so that in a conflict the object of the earlier file counts as older. All objects of one file
// have the same age.
func (o object) aged(age int64) any {
	m, ok := o.typed.(interface {
		metav1.Object
		runtime.Object
	})
	if !ok {
		return o.typed
	}
	if at := m.GetCreationTimestamp(); !at.IsZero() {
		return o.typed
	}
	c := m.DeepCopyObject().(metav1.Object)
	c.SetCreationTimestamp(metav1.Unix(age, 0))
	return c
}

func (o object) where() string { return position(o.path, o.line) }

// problem says why a file, or an object in it, is not in force. Comparable.
type problem struct {
	key    value.ObjectKey
	path   string
	line   int // 0 for the whole file
	field  string
	reason string
	cause  report.Cause // as in ingest.Rejection
}

func (p problem) where() string { return position(p.path, p.line) }

func (p problem) rejection(source string) ingest.Rejection {
	return ingest.Rejection{Source: source, Key: p.key, Where: p.where(), Field: p.field, Reason: p.reason,
		Cause: p.cause}
}

func position(path string, line int) string {
	if line == 0 {
		return path
	}
	return path + ":" + strconv.Itoa(line)
}

func equalProblems(a, b []problem) bool { return slices.Equal(a, b) }

// sortedKeys returns the keys of m in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

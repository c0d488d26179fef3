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

// object is one object and where it stands.
type object struct {
	key   value.ObjectKey
	typed any
	path  string
	line  int
}

// aged returns what sources hand over: the object, which without a creation time is as old as its file's place in path
// order says, so that of two that are in conflict the one in the earlier file counts as the older. Objects of one file
// have one age.
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

// problem is why a file, or an object in it, is not in force. Comparable.
type problem struct {
	key    value.ObjectKey
	path   string
	line   int // 0 when the whole file is meant
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

// sortedKeys returns the keys of m in their order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

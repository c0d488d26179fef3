package file

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// object is one object and where it stands.
type object struct {
	key   value.ObjectKey
	typed any
	path  string
	line  int
	age   int // the file's place in path order
}

// aged is what sources hand over: the object, which without a creation time is as old as its file's place in path order says, so that of
// two that are in conflict the one in the earlier file counts as the older. Objects of one file have one age.
func (o object) aged() any {
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
	c.SetCreationTimestamp(metav1.Unix(int64(o.age)+1, 0))
	return c
}

func (o object) where() string { return place(o.path, o.line) }

// problem is why a file, or an object in it, is not in force. Comparable.
type problem struct {
	key    value.ObjectKey
	path   string
	line   int // 0 when the whole file is meant
	field  string
	reason string
}

func (p problem) where() string { return place(p.path, p.line) }

func (p problem) rejection(source string) ingest.Rejection {
	return ingest.Rejection{Source: source, Key: p.key, Where: p.where(), Field: p.field, Reason: p.reason}
}

func place(path string, line int) string {
	if line == 0 {
		return path
	}
	return path + ":" + strconv.Itoa(line)
}

// merge makes one set of the objects of all files: of two with the same key, the first in path order, and in the file, wins. Files that
// vanished just now come last, and give way silently. The problems are by file.
func merge(t *tree, files map[string]*content, expect int) (map[value.ObjectKey]*object, map[string][]problem) {
	problems := map[string][]problem{}
	for path, err := range t.failed {
		problems[path] = []problem{{path: path, reason: fmt.Sprintf("cannot be read: %v", err)}}
	}
	paths := slices.SortedFunc(maps.Keys(files), func(a, b string) int {
		return cmp.Or(files[a].gone.Compare(files[b].gone), cmp.Compare(a, b))
	})
	winners := make(map[value.ObjectKey]*object, expect)
	for age, path := range paths {
		c := files[path]
		if len(c.problems) > 0 {
			problems[path] = append(problems[path], c.problems...)
		}
		for i := range c.objects {
			o := &c.objects[i]
			w, ok := winners[o.key]
			switch {
			case !ok:
				winner := *o
				winner.age = age
				winners[o.key] = &winner
			case c.gone.IsZero():
				problems[path] = append(problems[path], problem{key: o.key, path: path, line: o.line, reason: fmt.Sprintf(
					"is defined twice, here and in %s, which comes first and is in force: expected one definition", w.where())})
			}
		}
	}
	return winners, problems
}

func equalProblems(a, b []problem) bool { return slices.Equal(a, b) }

// sortedKeys are the keys of m in their order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

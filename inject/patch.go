package inject

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// operation is one operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Patch returns the JSON patch that makes after of before. raw is before as the API server wrote it: what this build
// does not know of there stays, for elements of lists are changed where they stand, as far as they keep their order.
func Patch(raw []byte, before, after *corev1.Pod) ([]byte, error) {
	var has any
	if err := json.Unmarshal(raw, &has); err != nil {
		return nil, err
	}
	pods, err := pairOfPods(before, after)
	if err != nil {
		return nil, err
	}
	var d difference
	d.value("", has, pods.was, pods.is)
	if d.operations == nil {
		return []byte("[]"), nil
	}
	return json.Marshal(d.operations)
}

// partition returns the elements of after whose name an element of before has, and the others; both in their order.
func partition[T any](before, after []T, name func(*T) string) (kept, fresh []T) {
	known := make(map[string]bool, len(before))
	for i := range before {
		known[name(&before[i])] = true
	}
	kept = after[:0:0] // nil where after is
	for i := range after {
		if known[name(&after[i])] {
			kept = append(kept, after[i])
		} else {
			fresh = append(fresh, after[i])
		}
	}
	return kept, fresh
}

func nameOfContainer(c *corev1.Container) string { return c.Name }

func nameOfVolume(v *corev1.Volume) string { return v.Name }

func nameOfSecret(s *corev1.LocalObjectReference) string { return s.Name }

// difference collects the operations that lead from one document to another.
type difference struct {
	operations []operation
}

func (d *difference) add(op, path string, value any) {
	d.operations = append(d.operations, operation{op, path, value})
}

// value writes what makes is of was, which differs. has is what really stands there.
func (d *difference) value(path string, has, was, is any) {
	switch is := is.(type) {
	case map[string]any:
		was, ok1 := was.(map[string]any)
		if has, ok2 := has.(map[string]any); ok1 && ok2 {
			d.object(path, has, was, is)
			return
		}
	case []any:
		was, ok1 := was.([]any)
		if has, ok2 := has.([]any); ok1 && ok2 && len(has) == len(was) && subsequence(was, is) {
			d.list(path, has, was, is)
			return
		}
	}
	d.add("replace", path, is)
}

func (d *difference) object(path string, has, was, is map[string]any) {
	for _, k := range slices.Sorted(maps.Keys(was)) {
		_, stays := is[k]
		if _, there := has[k]; there && !stays {
			d.add("remove", path+"/"+pointer(k), nil)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(is)) {
		at := path + "/" + pointer(k)
		old, known := was[k]
		switch real, there := has[k]; {
		case known && reflect.DeepEqual(old, is[k]):
		case known && there:
			d.value(at, real, old, is[k])
		default:
			d.add("add", at, is[k])
		}
	}
}

// list goes through a list that has all elements of the old one, in their order.
func (d *difference) list(path string, has, was, is []any) {
	old := 0
	for i, e := range is {
		at := path + "/" + strconv.Itoa(i)
		if old < len(was) && same(was[old], e) {
			if !reflect.DeepEqual(was[old], e) {
				d.value(at, has[old], was[old], e)
			}
			old++
			continue
		}
		d.add("add", at, e)
	}
}

func subsequence(of, in []any) bool {
	n := 0
	for _, e := range in {
		if n < len(of) && same(of[n], e) {
			n++
		}
	}
	return n == len(of)
}

// same tells whether two elements of lists are one, changed or not.
func same(a, b any) bool {
	x, ok1 := a.(map[string]any)
	y, ok2 := b.(map[string]any)
	if ok1 && ok2 {
		for _, key := range []string{"mountPath", "containerPort", "name"} {
			k, ok := x[key]
			if l, too := y[key]; ok && too {
				return k == l
			}
		}
	}
	return reflect.DeepEqual(a, b)
}

// pointer returns a key as a JSON pointer writes it (RFC 6901).
func pointer(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

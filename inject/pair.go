package inject

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// pair is a part of two pods, as maps that are to be compared. Most of a pod is the same in both, and to convert it
// costs more than to compare it. What is equal stands in both maps as one pointer to what it is in the first pod: it is
// equal at a glance, and is written right wherever it has to be written. Containers and volumes that only the second
// pod has stand there as pointers, too.
type pair struct{ was, is map[string]any }

// pairOfPods returns two pods.
func pairOfPods(before, after *corev1.Pod) (pair, error) {
	a, b := *before, *after
	a.ObjectMeta, b.ObjectMeta = metav1.ObjectMeta{}, metav1.ObjectMeta{}
	a.Spec, b.Spec = corev1.PodSpec{}, corev1.PodSpec{}
	out, err := pairOf(&a, &b)
	if err != nil {
		return out, err
	}
	meta, err := pairOf(&before.ObjectMeta, &after.ObjectMeta)
	if err != nil {
		return out, err
	}
	out.was["metadata"], out.is["metadata"] = meta.was, meta.is
	spec, err := pairOfSpecs(before.Spec, after.Spec)
	out.was["spec"], out.is["spec"] = spec.was, spec.is
	return out, err
}

func pairOfSpecs(before, after corev1.PodSpec) (pair, error) {
	a, b := before, after
	for _, spec := range []*corev1.PodSpec{&a, &b} { // a list that is empty and one that is none are not the same
		spec.Containers, spec.InitContainers = spec.Containers[:0:0], spec.InitContainers[:0:0]
		spec.Volumes = spec.Volumes[:0:0]
	}
	out, err := pairOf(&a, &b)
	if err != nil {
		return out, err
	}
	containers := lists[corev1.Container]{before.Containers, after.Containers, nameOfContainer}
	if err := containers.add(out, "containers"); err != nil {
		return out, err
	}
	containers.before, containers.after = before.InitContainers, after.InitContainers
	if err := containers.add(out, "initContainers"); err != nil {
		return out, err
	}
	return out, lists[corev1.Volume]{before.Volumes, after.Volumes, nameOfVolume}.add(out, "volumes")
}

// lists are a list of two pods.
type lists[T any] struct {
	before, after []T
	name          func(*T) string
}

// add adds the lists to a pair, under a name.
func (l lists[T]) add(to pair, field string) error {
	kept, fresh := partition(l.before, l.after, l.name)
	was, stay, err := l.elements(kept)
	if err != nil {
		return err
	}
	is := make([]any, 0, len(l.after))
	for i := range l.after {
		if len(fresh) > 0 && l.name(&fresh[0]) == l.name(&l.after[i]) {
			is, fresh = append(is, &l.after[i]), fresh[1:]
		} else {
			is, stay = append(is, stay[0]), stay[1:]
		}
	}
	if len(was) > 0 {
		to.was[field] = was
	}
	if len(is) > 0 {
		to.is[field] = is
	}
	return nil
}

// elements returns the elements of the first list, and those of the second that the first one has by name. Where all of
// the first one are kept in their order, each is a pair with what became of it.
func (l lists[T]) elements(kept []T) (was, stay []any, err error) {
	was, stay = make([]any, len(l.before)), make([]any, len(kept))
	if !slices.EqualFunc(l.before, kept, func(a, b T) bool { return l.name(&a) == l.name(&b) }) {
		return was, stay, cmp.Or(convert(was, l.before), convert(stay, kept))
	}
	for i := range kept {
		if reflect.DeepEqual(l.before[i], kept[i]) {
			was[i], stay[i] = &l.before[i], &l.before[i]
			continue
		}
		element, err := pairOf(&l.before[i], &kept[i])
		if err != nil {
			return nil, nil, err
		}
		was[i], stay[i] = element.was, element.is
	}
	return was, stay, nil
}

// convert writes elements into a list of maps.
func convert[T any](into []any, from []T) (err error) {
	for i := range from {
		if into[i], err = runtime.DefaultUnstructuredConverter.ToUnstructured(&from[i]); err != nil {
			return err
		}
	}
	return nil
}

// pairOf returns two structs.
func pairOf[T any](before, after *T) (pair, error) {
	a, b := *before, *after
	common := takeCommon(reflect.ValueOf(before).Elem(), reflect.ValueOf(&a).Elem(), reflect.ValueOf(&b).Elem())
	was, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&a)
	if err != nil {
		return pair{}, err
	}
	is, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&b)
	if err != nil {
		return pair{}, err
	}
	maps.Copy(was, common)
	maps.Copy(is, common)
	return pair{was, is}, nil
}

// takeCommon clears what two copies of structs have in common, and returns it as it is in the first of them. What costs
// nothing to convert stays.
func takeCommon(of, a, b reflect.Value) map[string]any {
	out := map[string]any{}
	for i := range of.NumField() {
		field := of.Type().Field(i)
		switch field.Type.Kind() {
		case reflect.Slice, reflect.Map, reflect.Pointer, reflect.Struct:
		default:
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || of.Field(i).IsZero() || !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			continue
		}
		out[name] = of.Field(i).Addr().Interface()
		a.Field(i).SetZero()
		b.Field(i).SetZero()
	}
	return out
}

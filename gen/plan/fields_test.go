package plan

import (
	"fmt"
	"iter"
	"reflect"
)

// editsOf yields an edit of each setting in a value, by the path to it: it sets what stands there in a copy of the
// value to something else. Elements of lists and maps come, go, and become others.
func editsOf(v reflect.Value) iter.Seq2[string, func(reflect.Value)] {
	return func(yield func(string, func(reflect.Value)) bool) {
		// under yields the edits of a part, which of finds in the copy.
		under := func(name string, part reflect.Value, of func(reflect.Value) reflect.Value) bool {
			for path, edit := range editsOf(part) {
				if !yield(name+path, func(o reflect.Value) { edit(of(o)) }) {
					return false
				}
			}
			return true
		}
		switch {
		case v.Kind() == reflect.Pointer && !v.IsNil():
			under("", v.Elem(), reflect.Value.Elem)
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() && !under("."+v.Type().Field(i).Name, v.Field(i),
					func(o reflect.Value) reflect.Value { return o.Field(i) }) {
					return
				}
			}
		case v.Kind() == reflect.Slice:
			for i := range v.Len() {
				if !under(fmt.Sprintf("[%d]", i), v.Index(i),
					func(o reflect.Value) reflect.Value { return o.Index(i) }) {
					return
				}
			}
			if v.Len() == 0 || yield("[less]", func(o reflect.Value) { o.Set(o.Slice(0, o.Len()-1)) }) {
				yield("[more]", setOther)
			}
		case v.Kind() == reflect.Map && v.Len() > 0:
			if yield("[less]", func(o reflect.Value) { o.SetMapIndex(v.MapKeys()[0], reflect.Value{}) }) {
				yield("[more]", setOther)
			}
		default:
			yield("", setOther)
		}
	}
}

// setOther sets v to another value; a list or a map gets a further element.
func setOther(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(v.Uint() + 1)
	case reflect.Float64:
		v.SetFloat(v.Float() + 1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.Append(v, someOf(v.Type().Elem())))
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		key := reflect.New(v.Type().Key()).Elem()
		setOther(key)
		v.SetMapIndex(key, someOf(v.Type().Elem()))
	default:
		panic("no other value of " + v.Type().String())
	}
}

// someOf returns an element of a list or a map: no nil pointer, and no empty text.
func someOf(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	if t.Kind() != reflect.Struct {
		setOther(v)
	}
	return v
}

// copyOf returns a copy of a value that has no list, map or pointer in common with it.
func copyOf(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(copyOf(v.Elem()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(copyOf(v.Field(i)))
			}
		}
	case reflect.Slice:
		if !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				out.Index(i).Set(copyOf(v.Index(i)))
			}
		}
	case reflect.Map:
		if !v.IsNil() {
			out.Set(reflect.MakeMap(v.Type()))
			for _, k := range v.MapKeys() {
				out.SetMapIndex(k, copyOf(v.MapIndex(k)))
			}
		}
	}
	return out
}

package value

import (
	"reflect"
	"testing"
	"unique"
)

// TestEqualReadsEveryField changes each field of each value, one at a time: a field that Equal forgets would keep an
// outdated value in force.
func TestEqualReadsEveryField(t *testing.T) {
	everyField(t, Endpoint{}, (*Endpoint).Equal)
	everyField(t, Workload{}, (*Workload).Equal)
	everyField(t, Projection{}, (*Projection).Equal)
	everyField(t, Service{}, (*Service).Equal)
	everyField(t, Namespace{}, (*Namespace).Equal)
	everyField(t, DestinationPolicy{}, (*DestinationPolicy).Equal)
	everyField(t, Routing{}, (*Routing).Equal)
	everyField(t, VirtualService{}, (*VirtualService).Equal)
	everyField(t, DestinationRule{}, (*DestinationRule).Equal)
	everyField(t, Gateway{}, (*Gateway).Equal)
	everyField(t, Sidecar{}, (*Sidecar).Equal)
	everyField(t, PeerAuthentication{}, (*PeerAuthentication).Equal)
	everyField(t, AuthorizationPolicy{}, (*AuthorizationPolicy).Equal)
	everyField(t, RequestAuthentication{}, (*RequestAuthentication).Equal)
	everyField(t, Visibility{}, func(a, b *Visibility) bool { return a.Equal(*b) })
}

func everyField[V any](t *testing.T, zero V, equal func(a, b *V) bool) {
	t.Helper()
	same := zero
	if !equal(&zero, &same) {
		t.Errorf("%T: a copy is not equal", zero)
	}
	for i := range reflect.TypeFor[V]().NumField() {
		other := zero
		field := reflect.ValueOf(&other).Elem().Field(i)
		field.Set(another(t, field.Type()))
		if equal(&zero, &other) {
			t.Errorf("%T: %s does not count", zero, reflect.TypeFor[V]().Field(i).Name)
		}
	}
}

// another returns a value of a type that differs from the zero value.
func another(t *testing.T, typ reflect.Type) reflect.Value {
	switch v := reflect.New(typ).Elem(); typ {
	case reflect.TypeFor[unique.Handle[Identity]]():
		return reflect.ValueOf(unique.Make(Identity{Workload: "x"}))
	default:
		switch typ.Kind() {
		case reflect.String:
			v.SetString("x")
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Int, reflect.Int64:
			v.SetInt(1)
		case reflect.Uint8, reflect.Uint32:
			v.SetUint(1)
		case reflect.Pointer:
			v.Set(reflect.New(typ.Elem()))
		case reflect.Slice:
			v.Set(reflect.Append(v, another(t, typ.Elem())))
		case reflect.Map:
			v.Set(reflect.MakeMap(typ))
			v.SetMapIndex(another(t, typ.Key()), another(t, typ.Elem()))
		case reflect.Struct:
			v.Field(0).Set(another(t, v.Field(0).Type()))
		default:
			t.Fatalf("no other value of %s", typ)
		}
		return v
	}
}

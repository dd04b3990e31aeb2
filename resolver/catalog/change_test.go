package catalog_test

import (
	"fmt"
	"reflect"
	"testing"

	"fingerpost/resolver/catalog"
)

// TestClone fills everything that a file can declare and asserts that the copy is equal and shares no memory with it.
func TestClone(t *testing.T) {
	d := new(catalog.Declared)
	fill(reflect.ValueOf(d).Elem(), 0)
	c := d.Clone()
	if !reflect.DeepEqual(d, c) {
		t.Fatalf("the copy differs:\n%+v\n%+v", d, c)
	}
	seen := map[uintptr]string{}
	memory(reflect.ValueOf(d), "d", func(at uintptr, where string) { seen[at] = where })
	if len(seen) < 10 {
		t.Fatalf("only %d places were filled", len(seen))
	}
	memory(reflect.ValueOf(c), "c", func(at uintptr, where string) {
		if seen[at] != "" {
			t.Errorf("%s is %s", where, seen[at])
		}
	})
	if empty := (&catalog.Declared{}).Clone(); !reflect.DeepEqual(empty, &catalog.Declared{}) {
		t.Errorf("the copy of nothing is %+v", empty)
	}
}

// fill makes every pointer and slice non-nil.
func fill(v reflect.Value, level int) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), level+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), level+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), level+1)
			}
		}
	case reflect.String:
		v.SetString(fmt.Sprint("text ", level))
	case reflect.Map:
		panic("a map: Clone has to copy it, and this test to fill it")
	}
}

// memory yields the target of each pointer and slice.
func memory(v reflect.Value, where string, yield func(at uintptr, where string)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && v.Elem().Type().Name() != "Location" {
			yield(v.Pointer(), where)
			memory(v.Elem(), where, yield)
		}
	case reflect.Slice:
		if v.Len() > 0 {
			yield(v.Pointer(), where)
		}
		for i := range v.Len() {
			memory(v.Index(i), fmt.Sprintf("%s[%d]", where, i), yield)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			memory(v.Field(i), where+"."+v.Type().Field(i).Name, yield)
		}
	}
}

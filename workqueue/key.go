package workqueue

import (
	"fmt"
	"reflect"
	"strings"
)

// badKey says why values of K must not be keys. Pointers and channels are equal
// by identity, so nothing would ever be merged; a float may not equal itself, so
// its entry could never be found again; an interface may hold either, or what
// panics when it is compared.
func badKey[K comparable]() error {
	t := reflect.TypeFor[K]()
	if path := badPart(t, ""); path != "" {
		return fmt.Errorf("%w: %v has %s", ErrBadKey, t, path)
	}
	return nil
}

// badPart is the first part of t that spoils equality, "" when there is none.
func badPart(t reflect.Type, path string) string {
	switch t.Kind() {
	case reflect.Struct:
		// A unique.Handle holds a pointer but is equal by value; netip.Addr has one.
		if t.PkgPath() == "unique" && strings.HasPrefix(t.Name(), "Handle[") {
			return ""
		}
		for i := range t.NumField() {
			f := t.Field(i)
			if bad := badPart(f.Type, path+"."+f.Name); bad != "" {
				return bad
			}
		}
		return ""
	case reflect.Array:
		return badPart(t.Elem(), path+"[]")
	case reflect.Pointer, reflect.UnsafePointer, reflect.Chan, reflect.Interface,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		if path == "" {
			return fmt.Sprintf("kind %v", t.Kind())
		}
		return fmt.Sprintf("a part %s of kind %v", path, t.Kind())
	}
	return ""
}

package object

import "reflect"

// isNilPointer guards the call of a promoted method: through a nil *Pod it would
// dereference the outer pointer to reach the embedded Meta.
func isNilPointer(v any) bool {
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

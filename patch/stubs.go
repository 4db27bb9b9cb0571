package patch

func Merge(patch []byte) (Patch, error)            { return nil, nil }
func JSON(ops []byte) (Patch, error)               { return nil, nil }
func MergeBetween(from, to []byte) (Patch, error)  { return nil, nil }
func JSONBetween(from, to []byte) (Patch, error)   { return nil, nil }
func Into[T any](p Patch, obj T) (T, error)        { return obj, nil }
func Between[T any](from, to T) (Patch, error)     { return nil, nil }

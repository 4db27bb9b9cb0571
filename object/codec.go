package object

import "encoding/json"

// Codec turns objects into bytes and back, exactly: what Decode makes of Encode's
// bytes is equal to what was encoded. Stores that serialise take one, and take nil
// for [JSON]. Its methods are called by many goroutines at once.
type Codec[T any] interface {
	Encode(T) ([]byte, error)
	Decode([]byte) (T, error)
}

// JSON is the Codec of encoding/json. What its tags leave out of T is lost.
type JSON[T any] struct{}

// Encode is json.Marshal.
func (JSON[T]) Encode(obj T) ([]byte, error) { return json.Marshal(obj) }

// Decode is json.Unmarshal into a new T.
func (JSON[T]) Decode(data []byte) (obj T, err error) {
	err = json.Unmarshal(data, &obj)
	return obj, err
}

package object

// Codec turns objects into bytes and back, exactly: Decode(Encode(x)) equals x.
// Wherever one is asked for, nil stands for encoding/json. A Codec is used by
// many goroutines at once.
type Codec[T any] interface {
	Encode(T) ([]byte, error)
	Decode([]byte) (T, error)
}

package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/homeostat/homeostat/object"
	"go.etcd.io/bbolt"
)

const (
	maxKey    = bbolt.MaxKeySize
	maxObject = 512 << 20 // a change holds two of them, and must fit bbolt's 2 GiB
)

// record is an object as stored. Its value in the file is: revision (8 bytes, big
// end first), length of ID (varint), ID, object.
type record struct {
	key  string
	rev  int64 // of its last write
	id   string
	data []byte
}

func (r record) value() []byte {
	b := make([]byte, 0, 8+binary.MaxVarintLen64+len(r.id)+len(r.data))
	b = binary.BigEndian.AppendUint64(b, uint64(r.rev))
	b = binary.AppendUvarint(b, uint64(len(r.id)))
	b = append(b, r.id...)
	return append(b, r.data...)
}

// readRecord shares value's memory.
func readRecord(key string, value []byte) (record, error) {
	if len(value) < 8 {
		return record{}, fmt.Errorf("%w: object %q: a record of %d bytes", ErrCorrupt, key, len(value))
	}
	id, data, err := cut(value[8:])
	if err != nil {
		return record{}, fmt.Errorf("%w: object %q: %w", ErrCorrupt, key, err)
	}
	rev := binary.BigEndian.Uint64(value)
	if rev == 0 || rev > math.MaxInt64 {
		return record{}, fmt.Errorf("%w: object %q: revision %d", ErrCorrupt, key, rev)
	}
	return record{key: key, rev: int64(rev), id: string(id), data: data}, nil
}

// copied is r with memory of its own, which outlives the transaction.
func (r record) copied(keysOnly bool) record {
	if keysOnly {
		r.data = nil
	} else {
		r.data = append([]byte(nil), r.data...)
	}
	return r
}

// change is one revision. The state before it is kept as well, so that a list
// begun before can go on. Its value in the file is: length of key, key, length of
// the record after (0: deleted), that, and the record before, if there was one.
type change struct {
	rev    int64
	after  record
	gone   bool
	before record // has no ID when there was none
	fresh  bool   // there was nothing before
}

func changeValue(key string, after, before []byte) []byte {
	b := make([]byte, 0, 2*binary.MaxVarintLen64+len(key)+len(after)+len(before))
	b = binary.AppendUvarint(b, uint64(len(key)))
	b = append(b, key...)
	b = binary.AppendUvarint(b, uint64(len(after)))
	b = append(b, after...)
	return append(b, before...)
}

// readChange shares value's memory.
func readChange(rev int64, value []byte) (change, error) {
	c, err := readChangeOf(rev, value)
	if err != nil {
		return change{}, fmt.Errorf("revision %d: %w", rev, err)
	}
	return c, nil
}

func readChangeOf(rev int64, value []byte) (c change, err error) {
	key, rest, err := cut(value)
	var after, before []byte
	if err == nil {
		after, before, err = cut(rest)
	}
	c = change{rev: rev, gone: len(after) == 0, fresh: len(before) == 0}
	switch {
	case err != nil:
		return c, fmt.Errorf("%w: %w", ErrCorrupt, err)
	case len(key) == 0 || c.gone && c.fresh:
		return c, fmt.Errorf("%w: no object", ErrCorrupt)
	}
	if !c.gone {
		if c.after, err = readRecord(string(key), after); err != nil {
			return c, err
		}
	}
	if !c.fresh {
		c.before, err = readRecord(string(key), before)
	}
	return c, err
}

func (c change) key() string {
	if c.gone {
		return c.before.key
	}
	return c.after.key
}

// cut takes a length and so many bytes from the front of b.
func cut(b []byte) (head, rest []byte, err error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, errors.New("a length that is beyond the end")
	}
	return b[size : size+int(n)], b[size+int(n):], nil
}

// revKey orders revisions as bytes.
func revKey(rev int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(rev)) }

func readRev(b []byte) (int64, bool) {
	if len(b) != 8 {
		return 0, false
	}
	rev := binary.BigEndian.Uint64(b)
	return int64(rev), rev <= math.MaxInt64
}

func version(rev int64) object.Version { return object.Version(strconv.FormatInt(rev, 10)) }

// version is "" when there is no record.
func (r record) version() object.Version {
	if r.rev == 0 {
		return ""
	}
	return version(r.rev)
}

package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// position is a place in the service's history, after the change seq. Numbers of
// two epochs have nothing to do with each other, so the epoch is part of it.
type position struct {
	epoch string
	seq   int64
}

func (p position) cursor() reflector.Cursor {
	return reflector.Cursor(p.epoch + "." + strconv.FormatInt(p.seq, 10))
}

// parse reads a cursor or a version: the service makes both of an epoch and a
// number.
func parse[S reflector.Cursor | object.Version](s S) (position, bool) {
	epoch, digits, _ := strings.Cut(string(s), ".")
	seq, err := strconv.ParseInt(digits, 10, 64)
	return position{epoch, seq}, err == nil && epoch != ""
}

// place reads a cursor that somebody comes back with. What we did not write is
// from somewhere else, and nothing can be resumed there.
func place(c reflector.Cursor) (position, error) {
	p, ok := parse(c)
	if !ok {
		return p, fmt.Errorf("%q is no cursor of this service: %w", c, reflector.ErrExpired)
	}
	return p, nil
}

// compare orders the cursors of one epoch. 0 of two that are not equal says that
// they are of two.
func compare(a, b reflector.Cursor) int {
	p, okP := parse(a)
	q, okQ := parse(b)
	if !okP || !okQ || p.epoch != q.epoch {
		return 0
	}
	return cmp.Compare(p.seq, q.seq)
}

// reached: whoever has seen everything up to c has seen the write that made v.
func reached(c reflector.Cursor, v object.Version) bool {
	at, okAt := parse(c)
	write, okWrite := parse(v)
	return okAt && okWrite && at.epoch == write.epoch && at.seq >= write.seq
}

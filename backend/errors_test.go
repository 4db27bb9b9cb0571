package backend_test

import (
	"errors"
	"testing"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
	"github.com/stretchr/testify/require"
)

func TestErrorTellsAll(t *testing.T) {
	cases := map[string]backend.Error{
		`get "a": not found`: {Op: "get", Key: "a", Err: backend.ErrNotFound},
		`create "a": backend: exists already (found version 7)`:             {Op: "create", Key: "a", Found: "7", Err: backend.ErrExists},
		`update "a/b": backend: version conflict (want version 3, found 7)`: {Op: "update", Key: "a/b", Want: "3", Found: "7", Err: backend.ErrConflict},
		`delete "a": backend: outcome unknown (want version 3)`:             {Op: "delete", Key: "a", Want: "3", Err: backend.ErrOutcomeUnknown},
		`delete "a": backend: outcome unknown`:                              {Op: "delete", Key: "a", Want: object.Any, Err: backend.ErrOutcomeUnknown},
		`update "a": backend: version conflict (found version 7)`:           {Op: "update", Key: "a", Want: object.Any, Found: "7", Err: backend.ErrConflict},
		`patch "a": permanent: backend: a write without a version`:          {Op: "patch", Key: "a", Err: backend.ErrNoVersion},
	}
	for text, e := range cases {
		require.EqualError(t, &e, text)
		require.ErrorIs(t, &e, e.Err)
	}
}

func TestWhichErrorsArePermanent(t *testing.T) {
	require.Same(t, reflector.ErrNotFound, backend.ErrNotFound)
	for _, err := range []error{backend.ErrNoVersion, backend.ErrDeleting, backend.ErrNoMeta} {
		require.True(t, retry.IsPermanent(err))
		require.True(t, retry.IsPermanent(&backend.Error{Err: err}))
	}
	all := []error{backend.ErrNotFound, backend.ErrExists, backend.ErrConflict, backend.ErrOutcomeUnknown}
	for _, err := range all {
		require.False(t, retry.IsPermanent(err))
	}
	all = append(all, backend.ErrNoVersion, backend.ErrDeleting, backend.ErrNoMeta)
	for i, a := range all {
		for j, b := range all {
			require.Equal(t, i == j, errors.Is(a, b))
		}
	}
}

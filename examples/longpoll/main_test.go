package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestItEndsByItself(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out))
	require.Equal(t, `two orders are placed
  ann pays 6
  bob pays 8
the service has too much to do
  an order is refused, to be placed again after 1s
  ann pays 6
  bob pays 8
  cyd pays 15
the service starts anew, and empty
  dan pays 3
`, out.String())
}

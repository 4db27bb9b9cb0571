package bolt_test

import "github.com/stretchr/testify/require"

var _ = require.NoError

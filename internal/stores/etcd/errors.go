package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
)

// translate adds what the contract wants to know of an error.
func translate(err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		return fmt.Errorf("%w: %w", reflector.ErrExpired, err)
	case errors.Is(err, rpctypes.ErrFutureRev):
		return fmt.Errorf("%w: %w", reflector.ErrFutureCursor, err)
	}
	switch code(err) {
	case codes.PermissionDenied, codes.InvalidArgument: // asking again changes nothing
		return retry.Permanent(err)
	}
	return err
}

// unanswered adds, to the error of a write that was sent, that it may have been
// done. Only a refusal is known not to have been.
func unanswered(err error) error {
	switch code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Unknown, codes.Internal:
		return fmt.Errorf("%w: %w", backend.ErrOutcomeUnknown, err)
	}
	return translate(err)
}

// code is the gRPC code behind an error of the client; Unknown if there is none.
func code(err error) codes.Code {
	if e, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		return e.Code()
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return codes.Canceled
	}
	return status.Code(err)
}

//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/backend/file"
	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/examples/internal/node"
	"github.com/homeostat/homeostat/examples/internal/proc"
	"github.com/homeostat/homeostat/examples/internal/workload"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/reconcile"
	"github.com/homeostat/homeostat/retry"
)

var (
	errConverged = errors.New("all is as declared")
	errTimeout   = errors.New("not as declared in time")
	errTooEarly  = errors.New("stopped before all was as declared")
)

// run puts the four parts together and runs them until ctx ends or, if asked to,
// until all is as declared. No process is left when it returns.
func run(ctx context.Context, cfg config) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if cfg.timeout > 0 {
		defer time.AfterFunc(cfg.timeout, func() { end(errTimeout) }).Stop()
	}
	out := newPrinter(os.Stdout, os.Stderr, cfg.plain)
	defer out.Close()
	logger := out.Logger()

	manifests, err := file.New(cfg.dir, func(set *workload.ReplicaSet) string {
		cfg.reached("source")
		return set.Name
	}, &file.Options{Poll: 500 * time.Millisecond, Logger: logger})
	if err != nil {
		return err
	}
	pods := backend.WithFinalizers[*workload.Pod](memory.New[*workload.Pod](nil))

	keeper, err := proc.NewKeeper()
	if err != nil {
		return err
	}
	defer keeper.Close()

	scale := newScaler(
		informer.New(manifests, folderOptions("manifests", logger)),
		reconcile.NewClient(pods, &informer.Options{Name: "pods of the sets", Logger: logger}, byOwner, byLabel),
		cfg.reached,
	).controller(logger)

	agent := node.New(
		reconcile.NewClient(pods, &informer.Options{Name: "pods of the node", Logger: logger}),
		keeper, &node.Options{Logs: cfg.logs, Logger: logger, Looked: func(string) { cfg.reached("node") }})
	defer agent.Close()

	status := newStatus(out,
		informer.New(manifests, folderOptions("manifests, for the printer", logger)),
		informer.New(pods, &informer.Options{Name: "pods, for the printer", Logger: logger}, byOwner),
		manifests.Faults)
	status.reached = cfg.reached
	if cfg.untilConverged {
		status.converged = func() { end(errConverged) }
	}

	err = reconcile.Run(ctx, scale, agent.Controller(), status)
	out.Close()
	switch cause := context.Cause(ctx); {
	case err != nil:
		return err
	case errors.Is(cause, errConverged):
		out.Lines(status.summary)
	case errors.Is(cause, errTimeout):
		out.Lines(status.lines())
		return fmt.Errorf("%w: %s", cause, cfg.timeout)
	case cfg.untilConverged:
		return errTooEarly
	}
	return nil
}

// folderOptions: a folder that is gone costs nothing to look for, so it is seen
// within a second when it is there again.
func folderOptions(name string, logger *slog.Logger) *informer.Options {
	return &informer.Options{Name: name, Logger: logger, Backoff: retry.Backoff{Max: 500 * time.Millisecond}}
}

//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/homeostat/homeostat/examples/internal/proc"
)

// config is what the flags say.
type config struct {
	dir            string
	untilConverged bool
	timeout        time.Duration
	logs           string
	plain          bool

	// at, if set, is called at the heart of each part, by its name: tests let parts
	// panic or fail.
	at func(part string) error
}

func (c config) reached(part string) error {
	if c.at == nil {
		return nil
	}
	return c.at(part)
}

func main() {
	proc.Main() // the processes' guardian is this binary too
	os.Exit(command(os.Args[1:]))
}

// command is the whole program: 0 is well, 1 a failure, 2 a wrong flag.
func command(args []string) int {
	return commandAt(args, nil)
}

func commandAt(args []string, at func(part string) error) int {
	cfg, err := parse(args)
	cfg.at = at
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "replicaset:", err)
		return 2
	}
	// A second signal finds the default action: the guardian cleans up then.
	stops := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		stops = append(stops, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), stops...)
	context.AfterFunc(ctx, stop)
	defer stop()
	if err := run(ctx, cfg); err != nil {
		fmt.Fprintln(os.Stderr, "replicaset:", err)
		return 1
	}
	return 0
}

// parse reads the flags. What is wrong is one line.
func parse(args []string) (cfg config, err error) {
	flags := flag.NewFlagSet("replicaset", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&cfg.dir, "dir", manifests(), "the `folder` with the manifests")
	flags.BoolVar(&cfg.untilConverged, "until-converged", false, "end, with exit status 0, once all is as declared")
	flags.DurationVar(&cfg.timeout, "timeout", 0, "with -until-converged: give up, with exit status 1, after so long (0 is never)")
	flags.StringVar(&cfg.logs, "logs", "", "the `folder` for what the processes write, a file a Pod (default: it is discarded)")
	flags.BoolVar(&cfg.plain, "plain", false, "a line for each transition, on a terminal too")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Println("usage: replicaset [flags]")
			flags.SetOutput(os.Stdout)
			flags.PrintDefaults()
		}
		return cfg, err
	}
	switch {
	case flags.NArg() > 0:
		return cfg, fmt.Errorf("unexpected argument %q: there are only flags (see -help)", flags.Arg(0))
	case cfg.timeout < 0:
		return cfg, fmt.Errorf("-timeout: %s is negative", cfg.timeout)
	case cfg.timeout > 0 && !cfg.untilConverged:
		return cfg, errors.New("-timeout: only with -until-converged")
	}
	for name, dir := range map[string]string{"dir": cfg.dir, "logs": cfg.logs} {
		if info, err := os.Stat(dir); name == "logs" && dir == "" {
			continue
		} else if err != nil {
			return cfg, fmt.Errorf("-%s: %w", name, err)
		} else if !info.IsDir() {
			return cfg, fmt.Errorf("-%s: %s is no folder", name, dir)
		}
	}
	return cfg, nil
}

// manifests is the folder beside this source file; for a binary that was taken
// elsewhere, the one beside the binary.
func manifests() string {
	const name = "manifests"
	if _, file, _, ok := runtime.Caller(0); ok {
		if dir := filepath.Join(filepath.Dir(file), name); isFolder(dir) {
			return dir
		}
	}
	if self, err := os.Executable(); err == nil {
		if dir := filepath.Join(filepath.Dir(self), name); isFolder(dir) {
			return dir
		}
	}
	return name
}

func isFolder(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

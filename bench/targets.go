package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// targets holds the targets of a run and their directory.
type targets struct {
	list   []Target
	absent map[string]string
	dir    string
}

// start starts the targets that the options select. A target that cannot be started is
// omitted with its reason. Invalid options are an error.
func (s *targets) start(ctx context.Context, o Options, stderr io.Writer) error {
	peers, err := o.peers()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(builtIn(), o.wants) {
		if err := s.startOwn(ctx, o, stderr); err != nil {
			return err
		}
	}
	for _, peer := range peers {
		s.add(ctx, peer.name, stderr, func() (Target, error) { return peer, tryOnce(ctx, peer) })
	}
	return ctx.Err()
}

// startOwn starts the targets that need the everything server.
func (s *targets) startOwn(ctx context.Context, o Options, stderr io.Writer) error {
	root := o.Root
	if root == "" && (len(o.Command) == 0 || o.Bin == "") {
		var err error
		if root, err = findRoot("."); err != nil {
			return err
		}
	}
	command := o.Command
	if len(command) == 0 {
		var err error
		if command, err = everythingCommand(root); err != nil {
			return err
		}
	}
	var err error
	if s.dir, err = os.MkdirTemp("", "callyard-bench-"); err != nil {
		return fmt.Errorf("making a temporary directory: %w", err)
	}
	servers := filepath.Join(s.dir, "servers.json")
	if err := writeServers(servers, everything(command)); err != nil {
		return err
	}
	started := func(three bool, start func(ctx context.Context, bin binaries, servers, dir string) (*fabric, error)) func(dir string) (Target, error) {
		return func(dir string) (_ Target, err error) {
			bin := binariesIn(o.Bin)
			if o.Bin == "" {
				if bin, err = build(ctx, root, s.dir, three); err != nil {
					return nil, err
				}
			}
			return start(ctx, bin, servers, dir)
		}
	}
	for _, own := range []struct {
		name  string
		start func(dir string) (Target, error)
	}{
		{DirectSDK, func(string) (Target, error) { return startSDK(ctx, command) }},
		{DirectSession, func(string) (Target, error) { return startSession(ctx, command, o.Log) }},
		{AllInOne, started(false, startAllInOne)},
		{AllInOneMCP, started(false, startAllInOneMCP)},
		{ThreeProcesses, started(true, startThree)},
	} {
		if !o.wants(own.name) {
			continue
		}
		s.add(ctx, own.name, stderr, func() (Target, error) {
			dir := filepath.Join(s.dir, own.name)
			if err := os.Mkdir(dir, 0o700); err != nil {
				return nil, fmt.Errorf("making a directory: %w", err)
			}
			return own.start(dir)
		})
	}
	return nil
}

// add starts one target, or records why it is absent.
func (s *targets) add(ctx context.Context, name string, stderr io.Writer, start func() (Target, error)) {
	if ctx.Err() != nil {
		return
	}
	fmt.Fprintf(stderr, "starting %s\n", name)
	t, err := start()
	if err != nil {
		fmt.Fprintf(stderr, "%s is left out: %v\n", name, err)
		if s.absent == nil {
			s.absent = make(map[string]string)
		}
		s.absent[name] = err.Error()
		return
	}
	s.list = append(s.list, t)
}

// close stops all targets and removes their files.
func (s *targets) close() error {
	var errs []error
	for _, t := range s.list {
		errs = append(errs, t.Close())
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/cmd/internal/setup"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/worker"
)

func configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Look at the configuration"}
	check := &cobra.Command{
		Use:   "check",
		Short: "Say every fault of the configuration and the servers file, or print what is in force",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return checkConfig(cmd) },
	}
	setup.AddFlags(check.Flags(), "servers", "listen", "data", "nats", "redis", "policy", "log-level", "log-format")
	cmd.AddCommand(check)
	return cmd
}

func checkConfig(cmd *cobra.Command) error {
	cfg, err := setup.Load(cmd.Flags())
	if err != nil {
		return err
	}
	log, err := cfg.Logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	served, err := cfg.Servers(log, demoEntry())
	if err != nil {
		return err
	}
	policy, err := cfg.LoadPolicy()
	if err != nil {
		return err
	}
	if err := cfg.Warrants.Check(); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if err := config.Dump(out, cfg); err != nil {
		return fmt.Errorf("printing the configuration: %w", err)
	}
	var faults []error
	for _, s := range served {
		spec := s.Session.Spec
		if s.Box == nil || !s.Box.Only {
			fmt.Fprintf(out, "# server %s: %s, %d sessions of %d calls\n", spec.ID, spec.Type, s.Session.Sessions, s.Session.InFlight)
		}
		if s.Box != nil {
			faults = append(faults, sayBox(out, spec.ID, s.Box))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	for _, doubt := range cfg.Doubts(policy, false, served) {
		fmt.Fprintf(out, "# policy: %s\n", doubt)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "The configuration is good: %d servers.\n", len(served))
	return nil
}

// sayBox prints everything that holds for the container of a server, and returns
// what is refused about it.
func sayBox(out io.Writer, server string, b *worker.Box) error {
	which := "calls of high risk run in a container of their own"
	if b.Only {
		which = "every call runs in a container of its own"
	}
	fmt.Fprintf(out, "# server %s: %s\n", server, which)
	if b.Fault != nil {
		return b.Fault
	}
	for _, line := range b.Spec.Describe() {
		fmt.Fprintf(out, "#   %s: %s (%s)\n", line.Key, line.Value, line.From)
	}
	for _, key := range b.Spec.Widened() {
		fmt.Fprintf(out, "# server %s: its container is wider than it should be, because docker.allow names %q\n", server, key)
	}
	return nil
}

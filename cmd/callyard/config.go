package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/cmd/internal/setup"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch/adapt"
	"github.com/callyard/callyard/internal/worker"
	"github.com/callyard/callyard/pkg/schema"
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
		if s.Adapt != nil {
			faults = append(faults, sayTools(cmd.Context(), out, spec.ID, s.Adapt(slog.New(slog.DiscardHandler))))
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

// sayTools prints which tools a server that is adapted here has, and what was left
// out.
func sayTools(ctx context.Context, out io.Writer, server string, src adapt.Source) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	defer src.CloseIdle()
	offer, err := src.Offer(ctx)
	if err != nil {
		return err
	}
	for _, t := range offer.Tools {
		fmt.Fprintf(out, "#   tool %s: %s\n", t.Name, t.From)
	}
	for _, note := range offer.Notes {
		fmt.Fprintf(out, "#   note: %s\n", note)
	}
	return nil
}

// sayBox prints everything that holds for the container of a server, and returns
// what is refused about it.
func sayBox(out io.Writer, server string, b *worker.Box) error {
	place := "container"
	if b.Isolation == schema.IsolationBubblewrap {
		place = "sandbox of bubblewrap, which is weaker than a container,"
	}
	which := "calls of high risk run in a " + place + " of their own"
	if b.Only {
		which = "every call runs in a " + place + " of its own"
	}
	fmt.Fprintf(out, "# server %s: %s\n", server, which)
	if b.Fault != nil {
		return b.Fault
	}
	for _, line := range b.Describe() {
		fmt.Fprintf(out, "#   %s: %s (%s)\n", line.Key, line.Value, line.From)
	}
	for _, key := range b.Spec.Widened() {
		fmt.Fprintf(out, "# server %s: its container is wider than it should be, because docker.allow names %q\n", server, key)
	}
	return nil
}

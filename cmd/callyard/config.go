package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/cmd/internal/setup"
	"github.com/callyard/callyard/internal/config"
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
	for _, s := range served {
		spec := s.Session.Spec
		fmt.Fprintf(out, "# server %s: %s, %d sessions of %d calls\n", spec.ID, spec.Type, s.Session.Sessions, s.Session.InFlight)
	}
	for _, doubt := range cfg.Doubts(policy, false, served) {
		fmt.Fprintf(out, "# policy: %s\n", doubt)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "The configuration is good: %d servers.\n", len(served))
	return nil
}

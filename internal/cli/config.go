package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch/adapt"
	"github.com/callyard/callyard/internal/setup"
	"github.com/callyard/callyard/internal/worker"
	"github.com/callyard/callyard/pkg/schema"
)

func configCommand() *cobra.Command {
	check := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration and the servers file, and print the settings in force",
		Args:  takes(0, 0),
		RunE:  func(cmd *cobra.Command, _ []string) error { return checkConfig(cmd) },
	}
	check.Flags().String("environments", "", "an environments file to check with the servers that it uses")
	setup.AddFlags(check.Flags(), "servers", "listen", "data", "nats", "redis", "policy", "log-level", "log-format")
	return group("config", "Check the configuration", check)
}

func checkConfig(cmd *cobra.Command) error {
	var roles everyRole
	p, err := setup.Prepare(cmd.Flags(), cmd.ErrOrStderr(), defaultServers(), roles.all()...)
	var all []config.Fault
	if found, ok := errors.AsType[*config.Faults](err); ok {
		all = found.List
	} else if err != nil {
		return err
	}
	all = append(all, p.Troubles...)
	var servers strings.Builder
	served := roles.worker.Served()
	for i := range served {
		if fault := sayServer(cmd.Context(), &servers, &served[i]); fault != nil {
			all = append(all, config.Fault{Where: served[i].Entry.Where, Message: fault.Error()})
		}
	}
	environments, more, err := checkEnvironments(cmd, p.Config, served)
	if err != nil {
		return err
	}
	all = append(all, more...)
	if out := screenFor(cmd); out.structured() {
		return reportConfig(out, p, all, servers.String()+environments)
	}
	if len(all) > 0 {
		return &config.Faults{List: all}
	}
	servers.WriteString(environments)
	out := cmd.OutOrStdout()
	if err := config.Dump(out, &p.Config.File); err != nil {
		return fmt.Errorf("printing the configuration: %w", err)
	}
	fmt.Fprint(out, servers.String())
	for _, note := range p.Notes {
		fmt.Fprintf(out, "# servers file: %s\n", note)
	}
	for _, doubt := range p.Doubts {
		fmt.Fprintf(out, "# policy: %s\n", doubt)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "The configuration is valid: %s.\n", count(len(served), "server"))
	return nil
}

// reportConfig prints the result of `config check` as one object. If there are faults, it returns
// an error.
func reportConfig(out screen, p *setup.Prepared, faults []config.Fault, servers string) error {
	type fault struct {
		Key     string `json:"key,omitempty"`
		Message string `json:"message"`
		Where   string `json:"where,omitempty"`
	}
	report := struct {
		Good          bool            `json:"good"`
		Faults        []fault         `json:"faults"`
		Servers       []string        `json:"servers"` // the lines for people
		Notes         []string        `json:"notes"`
		Doubts        []string        `json:"doubts"`
		Configuration json.RawMessage `json:"configuration,omitempty"`
	}{Good: len(faults) == 0, Faults: []fault{}, Servers: []string{}, Notes: append([]string{}, p.Notes...), Doubts: append([]string{}, p.Doubts...)}
	for _, f := range faults {
		report.Faults = append(report.Faults, fault{f.Path, f.Message, f.Where})
	}
	for line := range strings.Lines(servers) {
		report.Servers = append(report.Servers, strings.TrimPrefix(strings.TrimRight(line, "\n"), "# "))
	}
	if report.Good {
		var err error
		if report.Configuration, err = config.DumpJSON(&p.Config.File); err != nil {
			return fmt.Errorf("printing the configuration: %w", err)
		}
	}
	if err := out.value(report); err != nil {
		return err
	}
	if !report.Good {
		return ended(exitUsage)
	}
	return nil
}

// sayServer prints how a server is run, or returns the reason why it cannot be.
func sayServer(ctx context.Context, out io.Writer, s *worker.Served) error {
	spec := s.Session.Spec
	if s.Sandbox == nil || !s.Sandbox.Only {
		fmt.Fprintf(out, "# server %s: %s, %s of %s\n", spec.ID, spec.Type, count(s.Session.Sessions, "session"), count(s.Session.InFlight, "call"))
	}
	if s.Adapt != nil {
		if err := sayTools(ctx, out, s.Adapt(slog.New(slog.DiscardHandler))); err != nil {
			return err
		}
	}
	if s.Sandbox != nil && s.Sandbox.Fault == nil { // a fault is reported with the others
		saySandbox(out, string(spec.ID), s.Sandbox)
	}
	return nil
}

// sayTools prints the tools of a server that is adapted here, and the omitted ones.
func sayTools(ctx context.Context, out io.Writer, src adapt.Source) error {
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

// saySandbox prints the settings of the container of a server.
func saySandbox(out io.Writer, server string, b *worker.Sandbox) {
	place := "container"
	if b.Isolation == schema.IsolationBubblewrap {
		place = "sandbox of bubblewrap, which is weaker than a container,"
	}
	which := "calls of high risk run in a " + place + " of their own"
	if b.Only {
		which = "every call runs in a " + place + " of its own"
	}
	fmt.Fprintf(out, "# server %s: %s\n", server, which)
	for _, line := range b.Describe() {
		fmt.Fprintf(out, "#   %s: %s (%s)\n", line.Key, line.Value, line.From)
	}
	for _, key := range b.Spec.Widened() {
		fmt.Fprintf(out, "# server %s: its container is less isolated than recommended, because docker.allow contains %q\n", server, key)
	}
}

package cli

import (
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/internal/setup"
)

func initCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Create the missing streams and tables in NATS",
		Long: "init creates the missing streams and tables in NATS and changes nothing else; it can be repeated. It signs in with the nats section of the\n" +
			"configuration, as a user that can create streams: the operator of deploy/nats. Run it before the first start of the other processes and after each\n" +
			"upgrade: if NATS requires credentials, they cannot create streams themselves. `callyard up` does not require init.",
		Example: "  CALLYARD_NATS_USER=operator CALLYARD_NATS_PASSWORD_FILE=operator.password callyard init --nats nats://nats:4222\n" +
			"  callyard init --config init.yaml\n  callyard init --check",
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			progress := newActivity(screenOf(cmd.ErrOrStderr()))
			progress.plain, progress.alike = true, true
			defer progress.end()
			cfg, log, err := loadWithLog(cmd, progress)
			if err != nil {
				return err
			}
			if check, _ := cmd.Flags().GetBool("check"); check { // the flag is there
				progress.step(0, 0, "comparing the records of durable calls")
				return checkRecords(cmd, cfg, log, progress.end)
			}
			if err := provision(cmd.Context(), cfg, log, progress.step); err != nil {
				return fail(exitUnreachable, "%w", err)
			}
			progress.end()
			out := screenFor(cmd)
			if out.structured() {
				return out.value(map[string]bool{"ready": true})
			}
			return out.text("NATS has all streams and tables of Callyard.\n")
		},
	}
	setup.AddFlags(cmd.Flags(), "nats", "log-level", "log-format")
	cmd.Flags().Bool("check", false, "compare the records of durable calls with each other instead, and list missing messages")
	return cmd
}

// checkRecords prints the missing records of durable calls. If any are missing, it returns an error
// with exit code 1. It calls read after reading the records.
func checkRecords(cmd *cobra.Command, cfg *setup.Config, log *slog.Logger, read func()) error {
	found, err := findFaults(cmd.Context(), cfg, log)
	read()
	if err != nil {
		return fail(exitUnreachable, "%w", err)
	}
	faults := make([]string, 0, len(found.Faults))
	for _, f := range found.Faults {
		faults = append(faults, f.String())
	}
	out := screenFor(cmd)
	switch {
	case out.structured():
		err = out.value(map[string]any{"faults": faults})
	case len(faults) == 0:
		err = out.text("The records of durable calls are consistent.\n")
	default:
		err = out.text(strings.Join(faults, "\n") + "\n")
	}
	if err != nil {
		return err
	}
	if len(faults) > 0 {
		return fail(exitToolError, "Records of durable calls are missing. Restore the NATS streams from a backup; without a backup, the calls without a record end as unknown and do not run again.")
	}
	return nil
}

// loadWithLog loads the configuration for a command that uses it in this process, and logs to
// stderr.
func loadWithLog(cmd *cobra.Command, stderr io.Writer) (*setup.Config, *slog.Logger, error) {
	cfg, err := setup.Load(cmd.Flags())
	if err != nil {
		return nil, nil, err
	}
	log, err := cfg.Logger(stderr)
	return cfg, log, err
}

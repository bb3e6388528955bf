package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/cmd/internal/setup"
)

func initCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make the streams and tables of Callyard in NATS that are missing",
		Long: "init makes every stream and table that is missing in NATS and changes nothing that is there; it may be repeated. It signs in as the section nats of the\n" +
			"configuration says, as a user that may make streams: the operator of deploy/nats. Run it before the first start of the other processes and after each\n" +
			"upgrade: where NATS asks for a credential they may not make streams themselves. `callyard up` needs no init.",
		Example: "  CALLYARD_NATS_USER=operator CALLYARD_NATS_PASSWORD_FILE=operator.password callyard init --nats nats://nats:4222\n" +
			"  callyard init --config init.yaml",
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := setup.Load(cmd.Flags())
			if err != nil {
				return err
			}
			log, err := cfg.Logger(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if err := cfg.Provision(cmd.Context(), log); err != nil {
				return fail(exitUnreachable, "%w", err)
			}
			if asJSON, err := cmd.Flags().GetBool("json"); err != nil || asJSON {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), `{"ready":true}`)
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "NATS has every stream and table of Callyard.")
			return nil
		},
	}
	setup.AddFlags(cmd.Flags(), "nats", "log-level", "log-format")
	return cmd
}

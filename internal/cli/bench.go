package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/internal/bench"
)

func benchCommand() *cobra.Command {
	var o bench.Options
	var headers []string
	cmd := &cobra.Command{
		Use:   "bench [SERVER TOOL ARGUMENTS]",
		Short: "Measure calls: Callyard beside direct clients, or one tool of a running Callyard",
		Long: "Without arguments bench builds Callyard and measures it beside direct clients, everything in turn in one run.\n" +
			"With --url and SERVER TOOL ARGUMENTS it loads one tool of a Callyard that runs already.",
		Example: "  callyard bench --quick\n  callyard bench --endpoint peer=http://127.0.0.1:3000/servers/everything/tools/echo\n  callyard bench --figures batch,flat\n  callyard bench --url http://127.0.0.1:8080 demo echo '{\"message\":\"hi\"}'",
		Args:    cobra.MaximumNArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				if len(args) != 3 {
					return &exitError{code: exitUsage, err: errors.New("name SERVER, TOOL and the ARGUMENTS object")}
				}
				c, err := clientFrom(cmd)
				if err != nil {
					return err
				}
				defer c.close()
				if c.key != "" {
					headers = append(headers, "Authorization: Bearer "+c.key)
				}
				o.URL, o.Server, o.Tool, o.Arguments = c.base, args[0], args[1], []byte(args[2])
			}
			o.Headers = make(map[string]string)
			for _, h := range headers {
				k, v, ok := strings.Cut(h, ":")
				if !ok {
					return &exitError{code: exitUsage, err: errors.New("a --header is written as Name: value")}
				}
				o.Headers[strings.TrimSpace(k)] = strings.TrimSpace(v)
			}
			var err error
			if o.JSON, err = cmd.Flags().GetBool("json"); err != nil {
				return fail(exitUsage, "%w", err)
			}
			run := bench.Main
			if len(o.Figures) > 0 {
				if o.JSON {
					return fail(exitUsage, "--json does not go with --figures: they are a table with a verdict for each line.")
				}
				run = bench.MainFigures
			}
			err = run(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
			if err != nil && cmd.Context().Err() == nil {
				err = &exitError{code: exitToolError, err: err}
			}
			return err
		},
	}
	f := cmd.Flags()
	f.IntSliceVarP(&o.C, "concurrency", "c", nil, "calls at once (default 1,10,50,200)")
	f.IntSliceVar(&o.Sizes, "size", nil, "bytes of the echoed text (default 200,20000,1000000)")
	f.IntVar(&o.Rounds, "rounds", 0, "rounds over all cells; medians are shown (default 3)")
	f.DurationVar(&o.Duration, "duration", 0, "measured time of a cell in a round (default 2s)")
	f.DurationVar(&o.Warmup, "warmup", 0, "time before it (default 500ms)")
	f.BoolVar(&o.Quick, "quick", false, "a short run: fewer cells, one round")
	f.StringSliceVar(&o.Figures, "figures", nil, "measure batches against what is promised of them: all, or some of "+strings.Join(bench.FigureNames(), ","))
	f.IntVar(&o.Calls, "calls", 0, "calls of the largest batch of the figures (default 1000000; with --quick 100000)")
	f.StringSliceVar(&o.Only, "only", nil, "targets to measure (default all)")
	f.StringArrayVar(&o.URLs, "endpoint", nil, "another HTTP endpoint to measure beside, as name=url")
	f.StringArrayVar(&headers, "header", nil, "header for the calls, as Name: value")
	f.StringVar(&o.Out, "out", "bench-out", "folder for bench.json and bench.png")
	f.StringVar(&o.Bin, "bin", "", "folder with callyard, frontdoor, worker and nats-server (default: they are built)")
	return cmd
}

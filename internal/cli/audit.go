package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/internal/embedded"
	"github.com/callyard/callyard/internal/setup"
	"github.com/callyard/callyard/internal/store/audit"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// auditTimeout limits the time to open the record. Reading has no limit.
const auditTimeout = 15 * time.Second

func auditCommand() *cobra.Command {
	verify := &cobra.Command{
		Use: "verify", Short: "Verify that no audit record was changed, removed or added", Args: takes(0, 0),
		Example: "  callyard audit verify\n  callyard audit verify --nats nats://nats.example.com:4222",
		RunE: func(cmd *cobra.Command, args []string) error {
			if asksFrontDoor(cmd) {
				return withClient(askVerify)(cmd, args)
			}
			return withAudit(cmd, verifyAudit)
		},
	}
	var f auditFlags
	list := &cobra.Command{
		Use: "list", Short: "List audit records, oldest first; over a front door, newest first", Args: takes(0, 0),
		Example: "  callyard audit list --call call_06b2t8m3c0w3v2q5n7k9a1d4fz\n  callyard audit list --kind decided,ran --since 24h --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if asksFrontDoor(cmd) {
				return withClient(f.ask)(cmd, args)
			}
			return withAudit(cmd, f.list)
		},
	}
	list.Flags().StringVar(&f.call, "call", "", "id of the call whose records are listed")
	list.Flags().StringVar(&f.by, "by", "", "only records of actions of this principal")
	list.Flags().StringVar(&f.kind, "kind", "", "only these kinds, separated by commas: asked, held, decided, ran, ended …")
	list.PreRunE = func(*cobra.Command, []string) error {
		if f.limit < 0 {
			return fail(exitUsage, "--limit must not be negative; 0 lists all.")
		}
		return nil
	}
	list.Flags().IntVar(&f.limit, "limit", 100, "with --url: the maximum number of records; 0 for all")
	durationVar(list.Flags(), &f.since, "since", 0, "age of the oldest record to list, such as 24h")
	for _, c := range []*cobra.Command{verify, list} {
		setup.AddFlags(c.Flags(), "nats", "data")
	}
	cmd := group("audit", "List and verify the audit records of approvals and operators", verify, list)
	cmd.Long = "audit reads the records of requests, decisions, runs and actions of operators. With --url or CALLYARD_URL it asks a front door, with a key that has the scope admin; " +
		"with --nats or --config it reads them from the NATS servers of the fabric; otherwise it reads the data folder of a `callyard up` that is not running."
	return cmd
}

// withAudit opens the audit record for reading.
func withAudit(cmd *cobra.Command, use func(*cobra.Command, *audit.Reader) error) error {
	flags := cmd.Flags()
	ofNATS := flags.Lookup("nats").Changed || flags.Lookup("config").Changed || os.Getenv("CALLYARD_NATS_URL") != "" || os.Getenv("CALLYARD_CONFIG") != ""
	return withStored(cmd, ofNATS, func(ctx context.Context, _ *setup.Config, conn *bus.Conn, _ *slog.Logger) error {
		reader, err := audit.OpenReader(ctx, conn)
		if err != nil {
			return fail(exitUsage, "%w", err)
		}
		return use(cmd, reader)
	})
}

// withStored connects to the NATS servers of the fabric, or else opens the data folder of a `callyard
// up` that does not run. ctx is for opening.
func withStored(cmd *cobra.Command, ofNATS bool, use func(ctx context.Context, cfg *setup.Config, conn *bus.Conn, log *slog.Logger) error) error {
	cfg, log, err := loadWithLog(cmd, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), auditTimeout)
	defer cancel()
	var conn *bus.Conn
	if ofNATS {
		if conn, err = cfg.Connect(ctx, cmd.Parent().Name(), false, log); err != nil {
			return fail(exitUnreachable, "%w", err)
		}
	} else {
		if _, err := os.Stat(cfg.Data); errors.Is(err, os.ErrNotExist) {
			return fail(exitUsage, "the data folder %s does not exist; set it with --data, or the NATS server with --nats", cfg.Data)
		}
		server, err := embedded.Start(embedded.Options{Dir: cfg.Data, Log: log})
		if _, ok := errors.AsType[*embedded.DamageError](err); ok {
			return fail(exitUnreachable, "%w", err)
		}
		if err != nil {
			return fail(exitUnreachable, "%w; to read the data of a `callyard up` that runs, set nats.listen and pass that address with --nats; `callyard audit` can also ask the front door, with --url", err)
		}
		defer func() {
			if err := server.Close(); err != nil {
				log.Warn("closing the data folder", "error", err)
			}
		}()
		if conn, err = bus.Connect(ctx, bus.Options{InProcess: server, Name: cmd.Parent().Name(), Log: log}); err != nil {
			return fail(exitUnreachable, "%w", err)
		}
	}
	defer conn.Close()
	return use(ctx, cfg, conn, log)
}

func verifyAudit(cmd *cobra.Command, r *audit.Reader) error {
	report, err := r.Verify(cmd.Context())
	if err != nil {
		return fail(exitUnreachable, "%w", err)
	}
	return showReport(screenFor(cmd), report)
}

// showReport prints the result of a verification. Faults are an error.
func showReport(out screen, report *audit.Report) error {
	var err error
	if out.structured() {
		err = out.value(report)
	} else {
		err = out.text(reportText(report))
	}
	if err == nil && !report.OK() {
		err = ended(exitUnmet)
	}
	return err
}

func reportText(report *audit.Report) string {
	records, writers := count(report.Records, "record"), count(report.Writers, "writer")
	if report.OK() {
		return fmt.Sprintf("The audit log is intact: %s of %s.\n", records, writers)
	}
	var b strings.Builder
	for _, f := range report.Faults {
		fmt.Fprintf(&b, "%s: %s, record %d of %s\n", strings.ToUpper(string(f.Kind)), oneLine(f.What), f.Seq, oneLine(f.Writer))
	}
	fmt.Fprintf(&b, "%s in %s of %s.\n", count(report.Count, "fault"), records, writers)
	return b.String()
}

// auditFlags select records.
type auditFlags struct {
	call, by, kind string
	since          time.Duration
	limit          int
}

func (f *auditFlags) list(cmd *cobra.Command, r *audit.Reader) error {
	filter := audit.Filter{CallID: schema.CallID(f.call), By: f.by, Limit: 1000}
	for _, kind := range commaList(f.kind) {
		filter.Kinds = append(filter.Kinds, audit.Kind(kind))
	}
	if f.since > 0 {
		filter.Since = time.Now().Add(-f.since)
	}
	out := screenFor(cmd)
	for cursor := ""; ; {
		page, next, err := r.Read(cmd.Context(), schema.AllTenants(), filter, cursor)
		if err != nil {
			return fail(exitUnreachable, "%w", err)
		}
		for i := range page {
			rec := &page[i]
			if out.structured() {
				if err := out.entry(marshal(rec)); err != nil {
					return err
				}
				continue
			}
			shown := auditRecord{At: rec.At, Kind: string(rec.Kind), By: rec.By, CallID: string(rec.CallID), Server: string(rec.Server), Tool: rec.Tool, Operation: rec.Operation, Path: rec.Path, Outcome: rec.Outcome}
			if err := out.text(shown.line()); err != nil {
				return err
			}
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
}

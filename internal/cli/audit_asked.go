package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/store/audit"
)

// asksFrontDoor reports whether to read the audit record through a front door: its address is set,
// but no NATS server, data folder or configuration file. Flags take precedence over the environment.
func asksFrontDoor(cmd *cobra.Command) bool {
	for _, flag := range []string{"nats", "data", "config"} {
		if f := cmd.Flags().Lookup(flag); f != nil && f.Changed {
			return false
		}
	}
	if f := cmd.Flags().Lookup("url"); f != nil && f.Changed {
		return true
	}
	return os.Getenv("CALLYARD_URL") != "" && os.Getenv("CALLYARD_NATS_URL") == "" && os.Getenv("CALLYARD_CONFIG") == ""
}

// auditRecord is an audit record in the format of the REST API.
type auditRecord struct {
	At        time.Time `json:"at"`
	Kind      string    `json:"kind"`
	By        string    `json:"by"`
	CallID    string    `json:"call_id"`
	Server    string    `json:"server"`
	Tool      string    `json:"tool"`
	Operation string    `json:"operation"`
	Path      string    `json:"path"`
	Outcome   string    `json:"outcome"`
}

// line formats a record for people. Names and paths are of callers and servers.
func (r *auditRecord) line() string {
	what := r.Server + "/" + r.Tool
	if r.Operation != "" {
		what = r.Operation + " " + r.Path
	}
	return fmt.Sprintf("%s  %-18s %-20s %s  %s\n", r.At.Local().Format(time.DateTime), oneLine(r.Kind), oneLine(cmp.Or(r.By, "-")), oneLine(r.CallID), oneLine(what+" "+r.Outcome))
}

// ask lists records through the front door, newest first.
func (f *auditFlags) ask(ctx context.Context, c *client, _ []string) error {
	params := callyard.ListAuditParams{Call: optional(f.call), By: optional(f.by)}
	for _, kind := range commaList(f.kind) {
		params.Kind = append(params.Kind, callyard.ListAuditParamsKind(kind))
	}
	if f.since > 0 {
		params.Since = new(time.Now().Add(-f.since))
	}
	all, err := readList[auditRecord](ctx, c, f.limit, func(most int, cursor string) request {
		params.Limit, params.Cursor = &most, optional(cursor)
		return with(c.api.ListAudit, &params)
	})
	if err != nil {
		return err
	}
	for i := range all.items {
		if c.out.structured() {
			if err := c.out.entry(all.raw[i]); err != nil {
				return err
			}
			continue
		}
		if err := c.out.text(all.items[i].line()); err != nil {
			return err
		}
	}
	return nil
}

// askVerify verifies through the front door, which verifies in parts.
func askVerify(ctx context.Context, c *client, _ []string) error {
	for before := int64(-1); ; {
		var v callyard.AuditVerification
		if _, err := c.report(ctx, c.api.VerifyAudit, &v); err != nil {
			return err
		}
		if !v.Complete {
			if v.Records == before {
				return fail(exitUnreachable, "The front door verifies no further than %d records; look at its log, and at NATS.", v.Records)
			}
			before = v.Records
			continue
		}
		report := audit.Report{Writers: int(v.Writers), Records: int(v.Records), Trimmed: v.Trimmed, Count: int(v.FaultCount)}
		for i := range v.Faults {
			fault := audit.Fault{Writer: v.Faults[i].Writer, Kind: audit.FaultKind(v.Faults[i].Kind), What: v.Faults[i].What}
			if seq := v.Faults[i].Seq; seq != nil {
				fault.Seq = uint64(*seq)
			}
			report.Faults = append(report.Faults, fault)
		}
		if !v.HeadsCompared {
			if err := c.note.text("The ends of the chains were not compared with their heads: load the NATS permissions of this version.\n"); err != nil {
				return err
			}
		}
		return showReport(c.out, &report)
	}
}

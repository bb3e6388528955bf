package cli

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/calls/usage"
	"github.com/callyard/callyard/internal/setup"
	"github.com/callyard/callyard/internal/store/audit"
	"github.com/callyard/callyard/internal/store/credentialtable"
	"github.com/callyard/callyard/internal/store/endtable"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/internal/store/keytable"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/store/noticetable"
	"github.com/callyard/callyard/internal/store/oauthtable"
	"github.com/callyard/callyard/internal/store/outbox"
	"github.com/callyard/callyard/internal/store/pintable"
	"github.com/callyard/callyard/internal/store/servertable"
	"github.com/callyard/callyard/internal/store/sessiontable"
	"github.com/callyard/callyard/internal/store/settable"
	"github.com/callyard/callyard/internal/store/slacktable"
	"github.com/callyard/callyard/internal/store/switchtable"
	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/internal/webhook"
	"github.com/callyard/callyard/pkg/bus"
)

// stored returns the streams and tables of all stores, with their retention.
func stored() ([]bus.StreamSpec, []bus.TableSpec) {
	return slices.Concat(ledger.Options{}.Streams(), audit.Streams(), records.Streams(), usage.Streams(), outbox.Streams(webhook.KeepFor), journal.Options{}.Streams(), datakey.Streams()),
		slices.Concat(audit.Tables(), ledger.Tables(), switchtable.Specs(), pintable.Specs(), servertable.Specs(), settable.Specs(), keytable.Specs(), sessiontable.Specs(), slacktable.Specs(), noticetable.Specs(), credentialtable.Specs(), oauthtable.Specs(), endtable.Specs())
}

// provision creates the streams and tables of Callyard that are missing in NATS, as the configured
// NATS user. It waits up to a minute for NATS and for all servers of its cluster. It is idempotent
// and does not change existing ones. It calls step before each stream and table with the number of
// completed ones.
func provision(ctx context.Context, cfg *setup.Config, log *slog.Logger, step func(done, total int, text string)) error {
	step(0, 0, "connecting to NATS")
	ctx, cancel := context.WithTimeout(ctx, setup.OpenFor)
	defer cancel()
	conn, err := cfg.ConnectAs(ctx, bus.Options{Name: "init", Role: "init", Provision: true, Log: log})
	if err != nil {
		return err
	}
	defer conn.Close()
	streams, tables := stored()
	done, total := 0, len(streams)+len(tables)
	for i := range streams {
		step(done, total, "creating missing streams and tables")
		if err := bus.Provision(ctx, conn, streams[i:i+1], nil); err != nil {
			return err
		}
		done++
	}
	for i := range tables {
		step(done, total, "creating missing streams and tables")
		if err := bus.Provision(ctx, conn, nil, tables[i:i+1]); err != nil {
			return err
		}
		done++
	}
	return nil
}

// checkFor limits the time to read all records of durable calls.
const checkFor = 10 * time.Minute

// findFaults compares the records in NATS with each other; see [compareRecords].
func findFaults(ctx context.Context, cfg *setup.Config, log *slog.Logger) (*journal.Findings, error) {
	ctx, cancel := context.WithTimeout(ctx, checkFor)
	defer cancel()
	conn, err := cfg.ConnectAs(ctx, bus.Options{Name: "init", Role: "init", Log: log})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return compareRecords(ctx, conn, time.Time{}, log)
}

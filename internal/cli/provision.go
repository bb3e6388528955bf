package cli

import (
	"context"
	"log/slog"
	"time"

	"github.com/callyard/callyard/internal/ledger"
	"github.com/callyard/callyard/internal/ledger/journal"
	"github.com/callyard/callyard/internal/record"
	"github.com/callyard/callyard/internal/setup"
	"github.com/callyard/callyard/internal/store/noticetable"
	"github.com/callyard/callyard/internal/store/slacktable"
	"github.com/callyard/callyard/internal/webhook"
	"github.com/callyard/callyard/pkg/bus"
)

// retention is how long the roles keep what they store.
func retention() bus.Retention {
	return bus.Retention{
		Ledger: ledger.Options{}.Stored(), Journals: journal.Options{}.Stored(), Executions: record.Options{}.Stored(), Deliveries: webhook.KeepFor,
		Tables: append(slacktable.Specs(), noticetable.Specs()...),
	}
}

// provision makes every stream and table of Callyard that is missing in NATS, as the
// user that the configuration names. It waits up to a minute for NATS and for all
// servers of its cluster. It may be repeated, and changes nothing that is there.
func provision(ctx context.Context, cfg *setup.Config, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, setup.OpenFor)
	defer cancel()
	conn, err := cfg.ConnectAs(ctx, bus.Options{Name: "init", Role: "init", Provision: true, Log: log})
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Provision(ctx, retention())
}

// checkFor bounds the reading of all records of durable calls.
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

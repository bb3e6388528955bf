package setup

import (
	"context"
	"log/slog"
	"time"

	"github.com/callyard/callyard/internal/ledger"
	"github.com/callyard/callyard/internal/ledger/journal"
	"github.com/callyard/callyard/internal/record"
	"github.com/callyard/callyard/internal/webhook"
	"github.com/callyard/callyard/pkg/bus"
)

// retention is how long the roles keep what they store.
func retention() bus.Retention {
	return bus.Retention{
		Ledger: ledger.Options{}.Stored(), Journals: journal.Options{}.Stored(), Executions: record.Options{}.Stored(), Deliveries: webhook.KeepFor,
	}
}

// Provision makes every stream and table of Callyard that is missing in NATS, as the
// user that the configuration names. It waits up to a minute for NATS and for all
// servers of its cluster. It may be repeated, and changes nothing that is there.
func (c *Config) Provision(ctx context.Context, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, openFor)
	defer cancel()
	conn, err := c.connect(ctx, bus.Options{Name: "init", Role: "init", Provision: true, Log: log})
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Provision(ctx, retention())
}

// checkFor bounds the reading of all records of durable calls.
const checkFor = 10 * time.Minute

// CheckRecords compares the records in NATS with each other; see [CompareRecords].
func (c *Config) CheckRecords(ctx context.Context, log *slog.Logger) (*journal.Findings, error) {
	ctx, cancel := context.WithTimeout(ctx, checkFor)
	defer cancel()
	conn, err := c.connect(ctx, bus.Options{Name: "init", Role: "init", Log: log})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return CompareRecords(ctx, conn, time.Time{}, log)
}

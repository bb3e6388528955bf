package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// heldPages limits the number of pages of call records that are searched for held calls,
	// heldSince their age. Approvals are kept for longer than that.
	heldPages = 50
	heldSince = 14 * 24 * time.Hour
)

// compareRecords checks the stored records of durable calls and approvals for consistency: see
// [journal.Check], and each held call in the call records must have its approval. It ignores
// records from before since. It changes nothing; ctx limits its time.
func compareRecords(ctx context.Context, conn *bus.Conn, since time.Time, log *slog.Logger) (*journal.Findings, error) {
	found, err := journal.Check(ctx, conn, since, log)
	if err != nil {
		return nil, err
	}
	missing, err := missingApproval(ctx, conn, since, log)
	if err != nil {
		return nil, err
	}
	if missing != "" {
		found.Faults = append(found.Faults, journal.Fault{Stream: bus.StreamLedger, What: missing})
	}
	return found, nil
}

// missingApproval describes a held call whose approval does not exist, or returns "".
func missingApproval(ctx context.Context, conn *bus.Conn, since time.Time, log *slog.Logger) (string, error) {
	book, err := ledger.OpenRecords(ctx, conn, ledger.Options{})
	if err != nil {
		return "", err
	}
	executions, err := records.Open(ctx, conn, records.Options{FrontDoor: "check", Log: log})
	if err != nil {
		return "", err
	}
	defer executions.Close()
	if least := time.Now().Add(-heldSince); since.Before(least) {
		since = least
	}
	cursor := ""
	for range heldPages {
		page, next, err := executions.List(ctx, schema.AllTenants(), records.Filter{States: []schema.State{schema.StateHeld}, From: since}, cursor, 0)
		if err != nil {
			return "", err
		}
		for i := range page {
			if page[i].Approval == "" {
				continue
			}
			_, err := book.Get(ctx, schema.AllTenants(), page[i].Approval, bus.Leader)
			if errors.Is(err, bus.ErrNotFound) {
				return fmt.Sprintf("call %s was held under approval %s, which does not exist", page[i].ID, page[i].Approval), nil
			}
			if err != nil {
				return "", fmt.Errorf("reading an approval: %w", err)
			}
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	return "", nil
}

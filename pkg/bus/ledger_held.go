package bus

import (
	"context"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// The stream of held calls has the large arguments of calls that wait, apart from the
// ledger: the ledger is never thinned out, and these are forgotten when their call has
// ended.

func heldStream(o LedgerOptions, replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: streamHeld, Description: "large arguments of calls that wait for approval",
		Subjects: []string{subjectHeld + "*.*.*.*"},
		Storage:  jetstream.FileStorage, Replicas: replicas, MaxMsgsPerSubject: 1, MaxAge: o.MaxAge, MaxBytes: bound(o.MaxBytes),
		Discard: jetstream.DiscardNew, AllowDirect: true, DenyDelete: true,
	}
}

// PurgeHeld forgets the parts of a record that were stored as [PartHeld].
func (l *Ledger) PurgeHeld(ctx context.Context, id string) error {
	if err := l.held.Purge(ctx, jetstream.WithPurgeSubject(subjectHeld+token(id)+".*.*.*")); err != nil {
		return fmt.Errorf("forgetting the arguments of a call that has ended: %w", err)
	}
	return nil
}

// HeldIDs returns the ids of the records with parts that were stored as [PartHeld], in
// no order; ids that are no plain tokens are left out.
func (l *Ledger) HeldIDs(ctx context.Context) ([]string, error) {
	info, err := l.held.Info(ctx, jetstream.WithSubjectFilter(subjectHeld+">"))
	if err != nil {
		return nil, fmt.Errorf("listing the arguments of held calls: %w", err)
	}
	seen := make(map[string]bool, len(info.State.Subjects))
	for subject := range info.State.Subjects {
		id, _, _ := strings.Cut(strings.TrimPrefix(subject, subjectHeld), ".")
		seen[id] = plainToken(id)
	}
	ids := make([]string, 0, len(seen))
	for id, plain := range seen {
		if plain {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

package cli

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/callyard/callyard/internal/embedded"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/pkg/bus"
)

// keptKeys is longer than the lifetime of an idempotency key.
const keptKeys = 25 * time.Hour

// lost summarizes the accepted losses of the data folder.
func (u *fabric) lost() frontdoor.Lost {
	var l frontdoor.Lost
	keys := make(map[string]bool)
	streams := make(map[string]bool)
	for _, loss := range u.nats.Losses() {
		l.Files += len(loss.Damages)
		l.Latest = loss.At
		for _, d := range loss.Damages {
			if d.Stream != "" {
				streams[d.Stream] = true
			}
			if d.Stream != bus.StreamKeys && slices.Contains(bus.JournalStreams(), d.Stream) {
				l.Calls = loss.At
			}
			if d.Stream == bus.StreamLedger || d.Stream == bus.StreamHeld {
				l.Approvals = loss.At
			}
		}
		if time.Since(loss.At) < keptKeys {
			for _, key := range loss.Keys {
				keys[key] = true
			}
		}
	}
	l.Streams = slices.Sorted(maps.Keys(streams))
	if len(keys) > 0 {
		l.Key = func(hash string) bool { return keys[hash] }
	}
	return l
}

// logLosses logs the accepted losses at each start.
func (u *fabric) logLosses() {
	files := 0
	for _, loss := range u.nats.Losses() {
		for _, d := range loss.Damages {
			files++
			u.log.Warn("the data folder has an accepted loss", "accepted", loss.At, "damage", d.String())
		}
	}
	u.metrics.AcceptedLosses(files)
}

// check returns a function that compares the records of durable calls. It is for a start after a
// crash, which leaves no seal.
func (u *fabric) check(ctx context.Context) func(*embedded.Server, time.Time) ([]embedded.Damage, []string, error) {
	return func(s *embedded.Server, since time.Time) (found []embedded.Damage, keys []string, err error) {
		conn, err := bus.Connect(ctx, bus.Options{InProcess: s, Name: "check", Log: u.log})
		if err != nil {
			return nil, nil, err
		}
		defer conn.Close()
		result, err := compareRecords(ctx, conn, since, u.log)
		if err != nil {
			return nil, nil, err
		}
		for _, f := range result.Faults {
			found = append(found, embedded.Damage{What: f.String(), Stream: f.Stream, First: f.After + 1, Last: max(f.Before, 1) - 1})
		}
		return found, result.Keys, nil
	}
}

package usage

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Options configures a [Usage]. Records and Log are required.
type Options struct {
	// Records is the store of call records.
	Records *records.Recorder
	// Lead reports whether this front door counts for all. If nil, it does. For a while, several
	// front doors may lead, or none.
	Lead func() bool
	// Counted, if not nil, receives the new counts of this front door, by tenant and server, after
	// they are stored. Counts may be negative: a call that is run again is no longer failed.
	Counted func(tenant schema.TenantID, server schema.ServerID, c Counts)
	// Every is the poll interval for new records (default 5 s).
	Every time.Duration
	Log   *slog.Logger
}

const (
	defaultEvery = 5 * time.Second
	// conflicts is the maximum number of attempts to write an hour that others write as well.
	conflicts = 10
	// tellEvery is the minimum time between two log messages about failed counting.
	tellEvery = time.Minute
)

// Usage counts calls and reports the counts. It is safe for concurrent use.
type Usage struct {
	o     Options
	store *store

	counting chan struct{} // semaphore of counters
	reading  chan struct{} // semaphore of readers, to bound memory

	end  context.CancelFunc
	done sync.WaitGroup
	told time.Time // when a failure was last logged; used by the goroutine only
}

// Open opens the stored hours, creating their stream if it does not exist, and starts counting. ctx
// bounds the opening. The caller still owns the connection.
func Open(ctx context.Context, conn *bus.Conn, o Options) (*Usage, error) {
	s, err := bus.OpenStream(ctx, conn, Streams()[0])
	if err != nil {
		return nil, err
	}
	o.Every = cmp.Or(o.Every, defaultEvery)
	u := &Usage{o: o, store: &store{s}, counting: make(chan struct{}, 1), reading: make(chan struct{}, 1)}
	var life context.Context
	life, u.end = context.WithCancel(context.Background())
	u.done.Go(func() { u.run(life) })
	return u, nil
}

// Close stops counting and waits for its goroutine. The next front door continues at the same
// position.
func (u *Usage) Close() {
	u.end()
	u.done.Wait()
}

func (u *Usage) run(ctx context.Context) {
	tick := time.NewTicker(u.o.Every)
	defer tick.Stop()
	for {
		if u.o.Lead == nil || u.o.Lead() {
			if _, err := u.Count(ctx); err != nil && ctx.Err() == nil {
				u.tell(err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (u *Usage) tell(err error) {
	if time.Since(u.told) < tellEvery {
		return
	}
	u.told = time.Now()
	u.o.Log.Warn("usage cannot be counted at the moment; it is tried again", "error", err)
}

// Count counts new records until there are none or ctx ends. It reports whether everything that was
// stored when it began has been counted.
func (u *Usage) Count(ctx context.Context) (complete bool, err error) {
	select {
	case u.counting <- struct{}{}:
		defer func() { <-u.counting }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	log, err := u.o.Records.State(ctx)
	if err != nil {
		return false, err
	}
	for last := log.Last; ; {
		c, err := u.advance(ctx, log)
		if err != nil {
			return false, err
		}
		if c.Through >= last {
			return true, nil
		}
		if log, err = u.o.Records.State(ctx); err != nil {
			return false, err
		}
		last = min(last, log.Last) // the log lost messages at its end
	}
}

// advance counts the next messages of the log, and returns the cursor after them.
func (u *Usage) advance(ctx context.Context, log records.LogState) (cursor, error) {
	c, err := u.store.cursor(ctx)
	if err != nil {
		return c, err
	}
	if next, differs := c.follow(log); differs {
		if err := u.store.putCursor(ctx, &next); err != nil {
			return c, err
		}
		c = next
	}
	if log.Last <= c.Through {
		return c, nil
	}
	tail, err := u.o.Records.Tail(ctx, c.Through)
	if err != nil {
		return c, err
	}
	if tail.Until == c.Through {
		return c, schema.Errorf(schema.KindUnavailable, "The call records are not on every NATS server yet.")
	}
	now := time.Now()
	for _, number := range tail.Hours() {
		if at := startOf(number); now.Sub(at) > KeepFor || at.Sub(now) > 24*time.Hour {
			continue // would be removed immediately, or is not of a call that was made here
		}
		if err := u.countHour(ctx, number, tail, c, log); err != nil {
			return c, err
		}
	}
	c.Through = tail.Until
	err = u.store.putCursor(ctx, &c)
	if errors.Is(err, bus.ErrConflict) {
		err = nil // another front door counts as well, and everything is counted
	}
	return c, err
}

// pair is the key of a metrics update.
type pair struct {
	tenant schema.TenantID
	server schema.ServerID
}

// countHour updates one hour to the end of the tail.
func (u *Usage) countHour(ctx context.Context, number int64, tail *records.Tail, c cursor, log records.LogState) error {
	oldest := log.Oldest
	if !log.Dropped {
		oldest = time.Time{}
	}
	var err error
	for range conflicts {
		var h *hour
		var revision uint64
		if h, revision, err = u.store.hour(ctx, number); err != nil {
			return err
		}
		counted := h.through
		switch {
		case h.epoch > c.Epoch:
			return schema.Errorf(schema.KindUnavailable, "Another front door counts from a newer cursor.")
		case revision == 0:
			// Everything that the log had of this hour before was counted, so there was nothing, or the
			// hour was dropped for lack of space.
			counted = c.Through
		case h.epoch != c.Epoch:
			counted = c.Base
		}
		if counted >= tail.Until {
			return nil
		}
		sums := map[pair]*Counts{}
		if err = u.o.Records.Changes(ctx, tail, number, counted, oldest, func(before, after *records.Record) {
			if h.change(before, after) {
				if before != nil {
					sum(sums, before, -1)
				}
				sum(sums, after, 1)
			}
		}); err != nil {
			return err
		}
		h.epoch, h.through = c.Epoch, tail.Until
		if err = u.store.putHour(ctx, h, revision); err == nil {
			u.tellCounted(sums)
			return nil
		}
		if !errors.Is(err, bus.ErrConflict) {
			return err
		}
	}
	return err
}

func sum(sums map[pair]*Counts, r *records.Record, times int64) {
	of := pair{r.Tenant.Stored(), r.Server}
	if sums[of] == nil {
		sums[of] = new(Counts)
	}
	sums[of].add(countsOf(r), times)
}

func (u *Usage) tellCounted(sums map[pair]*Counts) {
	if u.o.Counted == nil {
		return
	}
	for of, c := range sums {
		u.o.Counted(of.tenant, of.server, *c)
	}
}

// startOf returns the start of an hour.
func startOf(hour int64) time.Time { return time.Unix(hour*int64(time.Hour/time.Second), 0).UTC() }

// hourOf returns the hour of a time.
func hourOf(t time.Time) int64 { return t.Unix() / int64(time.Hour/time.Second) }

package audit

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/bus"
)

const (
	// afresh is the age after which a verifier starts again with the first record.
	afresh = time.Hour
	// headsWithin bounds the read of the heads, because NATS does not answer requests that its
	// permissions deny.
	headsWithin = 3 * time.Second
)

// Verifier verifies the record incrementally, so that frequent checks are cheap. It continues after the
// last verified record, and starts again every hour. It is safe for concurrent use.
type Verifier struct {
	reader *Reader
	turn   chan struct{} // held during a verification
	c      *checker
	began  time.Time
}

// NewVerifier returns a verifier that has verified nothing yet.
func NewVerifier(r *Reader) *Verifier { return &Verifier{reader: r, turn: make(chan struct{}, 1)} }

// Verified is the progress of a verifier and its findings.
type Verified struct {
	Report
	// Complete is set if every record was verified that was stored when the verification began.
	Complete bool
	// Heads is set if the ends of the chains were compared with their heads.
	Heads bool
	// Began is the time at which the first record was verified.
	Began time.Time
}

// Verify continues for about the given time and returns the findings so far, like [Reader.Verify] for all
// records. The error is that of NATS, or of ctx.
func (v *Verifier) Verify(ctx context.Context, within time.Duration) (*Verified, error) {
	select {
	case v.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-v.turn }()
	heads, known := v.heads(ctx)
	now := time.Now() // heads may take longer than within
	deadline := now.Add(within)
	if v.c == nil || now.Sub(v.began) > afresh {
		v.c, v.began = newChecker(heads, v.reader.store.s.MaxAge(), now), now
	} else {
		v.c.renew(heads, now)
	}
	done := Verified{Heads: known, Began: v.began}
	for !done.Complete && time.Now().Before(deadline) {
		m, err := v.reader.store.next(ctx, v.c.last+1)
		switch {
		case errors.Is(err, bus.ErrNotFound):
			done.Complete = true
		case err != nil:
			return nil, err
		default:
			v.c.message(m)
		}
	}
	// finish works on a copy, because the chains continue.
	c := *v.c
	c.report.Faults, c.report.Trimmed = slices.Clone(c.report.Faults), slices.Clone(c.report.Trimmed)
	if done.Complete && known {
		if later, ok := v.heads(ctx); ok {
			done.Report = *c.finish(later)
			return &done, nil
		}
		done.Heads = false
	}
	c.report.Writers = len(c.chains)
	done.Report = c.report
	return &done, nil
}

// heads reads the heads of the chains. known is false if they cannot be read.
func (v *Verifier) heads(ctx context.Context) (heads map[string][]byte, known bool) {
	ctx, cancel := context.WithTimeout(ctx, headsWithin)
	defer cancel()
	heads, err := v.reader.store.heads.All(ctx)
	return heads, err == nil
}

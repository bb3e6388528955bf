package audit

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/bus"
)

const (
	// afresh is how old what a verifier found may be before it begins again with the first
	// record.
	afresh = time.Hour
	// headsWithin bounds the reading of the heads: NATS does not answer to what its
	// permissions deny.
	headsWithin = 3 * time.Second
)

// Verifier verifies the record piece by piece, so that somebody who looks often costs little.
// It continues behind what it verified before, and begins again every hour. It is safe for
// concurrent use.
type Verifier struct {
	reader *Reader
	turn   chan struct{} // held by the one who verifies
	c      *checker
	began  time.Time
}

// NewVerifier returns a verifier that has verified nothing yet.
func NewVerifier(r *Reader) *Verifier { return &Verifier{reader: r, turn: make(chan struct{}, 1)} }

// Verified is how far a verifier has come, and what it found.
type Verified struct {
	Report
	// Complete says that every record was verified that was stored when it began.
	Complete bool
	// Heads says that the ends of the chains were compared with their heads.
	Heads bool
	// Began is when the first record was verified.
	Began time.Time
}

// Verify continues for about the given time and says what is known then, as [Reader.Verify]
// does for all records. The error is that of NATS, or of ctx.
func (v *Verifier) Verify(ctx context.Context, within time.Duration) (*Verified, error) {
	select {
	case v.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-v.turn }()
	heads, known := v.heads(ctx)
	now := time.Now() // heads may take longer than the whole time that is asked for
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
	// The ends are judged on a copy: the chains continue.
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

// heads reads the heads of the chains; known is false where they cannot be read.
func (v *Verifier) heads(ctx context.Context) (heads map[string][]byte, known bool) {
	ctx, cancel := context.WithTimeout(ctx, headsWithin)
	defer cancel()
	heads, err := v.reader.store.heads.All(ctx)
	return heads, err == nil
}

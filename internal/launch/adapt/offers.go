package adapt

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Offers is the last good reading of what a source offers, where that is written in a
// text that may change, such as an OpenAPI document. T is what the source needs to run
// the tools. Its methods are safe for concurrent use.
type Offers[T any] struct {
	// Text is what the text is called in the log, Server the id of the server.
	Text, Server string
	// Fresh is the time for which a reading counts as just made.
	Fresh time.Duration
	// Read returns the text, and Make what is read in it. They are not called at once.
	Read func(context.Context) ([]byte, error)
	Make func(ctx context.Context, text []byte) (*Reading[T], error)
	Log  *slog.Logger // nil says nothing

	last    atomic.Pointer[Reading[T]]
	mu      sync.Mutex // one reading at a time
	read    time.Time
	grumble string // the last failure that was logged
}

// Reading is what was read in one text.
type Reading[T any] struct {
	Offer
	Own  T
	text []byte
}

// Offer returns what there is now. Where the text cannot be read any more, what was
// there last stays; that is logged once for each failure that reads differently.
func (o *Offers[T]) Offer(ctx context.Context) (*Offer, error) {
	r, err := o.get(ctx)
	if err != nil {
		return nil, err
	}
	return &r.Offer, nil
}

// Last returns the last reading, and reads for the first time where there is none.
func (o *Offers[T]) Last(ctx context.Context) (*Reading[T], error) {
	if r := o.last.Load(); r != nil {
		return r, nil
	}
	return o.get(ctx)
}

func (o *Offers[T]) get(ctx context.Context) (*Reading[T], error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	last := o.last.Load()
	if last != nil && time.Since(o.read) < o.Fresh {
		return last, nil
	}
	next, err := o.load(ctx, last)
	switch {
	case err == nil:
		o.read, o.grumble = time.Now(), ""
		o.last.Store(next)
		return next, nil
	case last == nil || ctx.Err() != nil:
		return nil, err
	}
	if o.grumble != err.Error() {
		o.grumble = err.Error()
		o.warn("the "+o.Text+" cannot be reloaded; the known tools remain", "error", err)
	}
	return last, nil
}

// load returns last where the text has not changed.
func (o *Offers[T]) load(ctx context.Context, last *Reading[T]) (*Reading[T], error) {
	text, err := o.Read(ctx)
	if err != nil {
		return nil, err
	}
	if last != nil && bytes.Equal(text, last.text) {
		return last, nil
	}
	next, err := o.Make(ctx, text)
	if err != nil {
		return nil, err
	}
	next.text = text
	for _, note := range next.Notes {
		o.warn(o.Text, "note", note)
	}
	return next, nil
}

func (o *Offers[T]) warn(sentence string, args ...any) {
	if o.Log != nil {
		o.Log.With("server", o.Server).Warn(sentence, args...) //nolint:sloglint // each adapter has its own constant sentences
	}
}

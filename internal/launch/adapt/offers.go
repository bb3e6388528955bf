package adapt

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Offers caches the last valid reading of a text that lists a source's tools and may change, such
// as an OpenAPI document. T is the data that the source needs to run the tools. Its methods are
// safe for concurrent use.
type Offers[T any] struct {
	// Text is the name of the text in the log. Server is the id of the server.
	Text, Server string
	// Fresh is the age below which a reading is reused.
	Fresh time.Duration
	// Read returns the text, and Make parses it. They are not called concurrently.
	Read func(context.Context) ([]byte, error)
	Make func(ctx context.Context, text []byte) (*Reading[T], error)
	Log  *slog.Logger // if nil, nothing is logged

	last    atomic.Pointer[Reading[T]]
	mu      sync.Mutex // held during a reading
	read    time.Time
	grumble string // the last logged failure
}

// Reading is the parsed content of one text.
type Reading[T any] struct {
	Offer
	Own  T
	text []byte
}

// Offer returns the current tools. If the text cannot be read any more, it returns the last valid
// tools and logs each different failure once.
func (o *Offers[T]) Offer(ctx context.Context) (*Offer, error) {
	r, err := o.get(ctx)
	if err != nil {
		return nil, err
	}
	return &r.Offer, nil
}

// Last returns the last reading. It reads for the first time if there is none.
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

// load returns last if the text has not changed.
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

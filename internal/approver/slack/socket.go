package slack

import (
	"context"
	"errors"
	"io"
	"log"
	"time"

	api "github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	"github.com/callyard/callyard/pkg/bus"
)

const (
	// reopenAfter is between tries to reach Slack: its own client waits longer and
	// longer, up to minutes.
	reopenAfter = time.Second
	// pingWithin is how long the socket may be silent.
	pingWithin = 30 * time.Second
)

// listen keeps a socket to Slack open until the face ends.
func (f *Face) listen() {
	down := false
	for f.ctx.Err() == nil {
		pause, err := f.socket(&down)
		if err != nil && !down && f.ctx.Err() == nil {
			f.o.Log.Warn("the socket to Slack is closed; it is opened again", "error", err)
			down = true
		}
		select {
		case <-f.ctx.Done():
		case <-time.After(pause):
		}
	}
}

// socket runs one client until it fails, and returns how long to wait before the next.
func (f *Face) socket(down *bool) (time.Duration, error) {
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	c := socketmode.New(f.client, socketmode.OptionLog(log.New(io.Discard, "", 0)), socketmode.OptionReadLimit(maxBody), socketmode.OptionPingInterval(pingWithin))
	ended := make(chan error, 1)
	f.work.Go(func() { ended <- c.RunContext(ctx) })
	pause, failed := reopenAfter, error(nil)
	for {
		select {
		case err := <-ended:
			if failed == nil {
				failed = err
			}
			if code := codeOf(failed); code != "" && code != "internal_error" {
				pause = max(pause, brokenFor) // an operator has to mend the token
			}
			return pause, failed
		case e := <-c.Events:
			switch e.Type {
			case socketmode.EventTypeConnected:
				if *down {
					f.o.Log.Info("the socket to Slack is open again")
				}
				*down = false
			case socketmode.EventTypeConnectionError:
				if what, ok := e.Data.(*api.ConnectionErrorEvent); ok {
					failed = what.ErrorObj
					var limited *api.RateLimitedError
					if errors.As(failed, &limited) {
						pause = max(pause, limited.RetryAfter)
					}
				}
				cancel()
			case socketmode.EventTypeInteractive, socketmode.EventTypeSlashCommand:
				f.envelope(ctx, c, e)
			}
		}
	}
}

// envelope takes one request that came by the socket.
func (f *Face) envelope(ctx context.Context, c *socketmode.Client, e socketmode.Event) {
	if e.Request == nil || e.Request.EnvelopeID == "" {
		return
	}
	id := e.Request.EnvelopeID
	switch data := e.Data.(type) {
	case api.InteractionCallback:
		if why := f.foreign(&data); why != "" {
			f.o.Log.Warn("a request by the socket of Slack was refused", "why", why)
			_ = c.AckCtx(ctx, id, nil) // the socket is closed; Slack sends it again
			return
		}
		if !f.begin(func(ctx context.Context) {
			if f.first(ctx, id) {
				f.act(ctx, &data)
			}
		}) {
			return // Slack sends it again
		}
		_ = c.AckCtx(ctx, id, nil) // as above
	case api.SlashCommand:
		if !f.ours(&data) {
			f.o.Log.Warn("a command of Slack was refused: it is of another workspace or app")
			_ = c.AckCtx(ctx, id, nil) // as above
			return
		}
		f.begin(func(work context.Context) {
			work, cancel := context.WithTimeout(work, takeFor)
			defer cancel()
			if f.first(work, id) {
				_ = c.AckCtx(work, id, f.command(work, &data)) // as above
			}
		})
	}
}

// first says that an envelope was not taken before, here or by another approver.
func (f *Face) first(ctx context.Context, id string) bool {
	err := f.once.Take(ctx, "socket-"+id)
	if err != nil && !errors.Is(err, bus.ErrConflict) {
		f.o.Log.Error("a request of Slack cannot be taken", "error", err)
	}
	return err == nil
}

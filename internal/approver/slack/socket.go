package slack

import (
	"context"
	"errors"
	"io"
	"log"
	"time"

	api "github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	"github.com/callyard/callyard/internal/kit/sleep"
)

const (
	// reopenAfter is the time between connection attempts. The Slack client's own backoff grows to
	// minutes.
	reopenAfter = time.Second
	// pingWithin is the maximum time without traffic on the socket.
	pingWithin = 30 * time.Second
)

// listen keeps a Socket Mode connection open until the app is closed.
func (i *intake) listen() {
	down := false
	for i.ctx.Err() == nil {
		pause, err := i.socket(&down)
		if err != nil && !down && i.ctx.Err() == nil {
			i.o.Log.Warn("the socket to Slack closed; it is reopened", "error", err)
			down = true
		}
		sleep.For(pause, i.ctx.Done())
	}
}

// socket runs one client until it fails, and returns the time to wait before the next.
func (i *intake) socket(down *bool) (time.Duration, error) {
	ctx, cancel := context.WithCancel(i.ctx)
	defer cancel()
	c := socketmode.New(i.client.api, socketmode.OptionLog(log.New(io.Discard, "", 0)), socketmode.OptionReadLimit(maxBody), socketmode.OptionPingInterval(pingWithin))
	ended := make(chan error, 1)
	i.work.Go(func() { ended <- c.RunContext(ctx) })
	pause, failed := reopenAfter, error(nil)
	for {
		select {
		case err := <-ended:
			if failed == nil {
				failed = err
			}
			if code := codeOf(failed); code != "" && code != "internal_error" {
				pause = max(pause, brokenFor) // an operator must replace the token
			}
			return pause, failed
		case e := <-c.Events:
			switch e.Type {
			case socketmode.EventTypeConnected:
				if *down {
					i.o.Log.Info("the socket to Slack is open again")
				}
				*down = false
			case socketmode.EventTypeConnectionError:
				if what, ok := e.Data.(*api.ConnectionErrorEvent); ok {
					failed = what.ErrorObj
					if limited, ok := errors.AsType[*api.RateLimitedError](failed); ok {
						pause = max(pause, limited.RetryAfter)
					}
				}
				cancel()
			case socketmode.EventTypeInteractive, socketmode.EventTypeSlashCommand:
				i.envelope(ctx, c, e)
			}
		}
	}
}

// envelope handles one request received over the socket.
func (i *intake) envelope(ctx context.Context, c *socketmode.Client, e socketmode.Event) {
	if e.Request == nil || e.Request.EnvelopeID == "" {
		return
	}
	id := e.Request.EnvelopeID
	switch data := e.Data.(type) {
	case api.InteractionCallback:
		if why := i.foreign(&data); why != "" {
			i.o.Log.Warn("a request on the Slack socket was refused", "why", why)
			_ = c.AckCtx(ctx, id, nil) // the socket is closed; Slack sends the envelope again
			return
		}
		if !i.begin(func(ctx context.Context) {
			if i.first(ctx, id) {
				i.decisions.act(ctx, &data)
			}
		}) {
			return // Slack sends it again
		}
		_ = c.AckCtx(ctx, id, nil) // as above
	case api.SlashCommand:
		if !i.isOurCommand(&data) {
			i.o.Log.Warn("a command from Slack was refused: it belongs to another workspace or app")
			_ = c.AckCtx(ctx, id, nil) // as above
			return
		}
		i.begin(func(work context.Context) {
			work, cancel := context.WithTimeout(work, takeFor)
			defer cancel()
			if i.first(work, id) {
				_ = c.AckCtx(work, id, i.commands.answer(work, &data)) // as above
			}
		})
	}
}

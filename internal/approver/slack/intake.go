package slack

import (
	"context"
	"errors"
	"sync"

	api "github.com/slack-go/slack"

	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/pkg/bus"
)

// intake receives the requests of Slack, over HTTP or the socket. It accepts only those of our
// workspace and app, once each. It is safe for concurrent use.
type intake struct {
	o         *Options
	signing   string // the signing secret of HTTP requests
	client    *client
	once      *bus.Claims
	decisions *decisions
	commands  *commands
	slots     chan struct{}
	budget    *bodies.Budget
	ctx       context.Context
	cancel    context.CancelFunc
	work      sync.WaitGroup

	mu   sync.Mutex
	shut bool
}

// stop cancels work in progress and refuses new work. It does not wait.
func (i *intake) stop() {
	i.mu.Lock()
	i.shut = true
	i.mu.Unlock()
	i.cancel()
}

// begin starts the work for a click without delaying the response. It returns false if too much
// work is in progress.
func (i *intake) begin(work func(ctx context.Context)) bool {
	select {
	case i.slots <- struct{}{}:
	default:
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.shut {
		<-i.slots
		return false
	}
	i.work.Go(func() {
		defer func() { <-i.slots }()
		ctx, cancel := context.WithTimeout(i.ctx, workFor)
		defer cancel()
		work(ctx)
	})
	return true
}

// first reports whether this is the first delivery of an envelope to any approver.
func (i *intake) first(ctx context.Context, id string) bool {
	err := i.once.Take(ctx, "socket-"+id)
	if err != nil && !errors.Is(err, bus.ErrConflict) {
		i.o.Log.Error("a request from Slack cannot be accepted", "error", err)
	}
	return err == nil
}

// foreign returns the reason why an interaction is not of our workspace and app, or "" if it is.
func (i *intake) foreign(c *api.InteractionCallback) string {
	team, app := i.o.Config.TeamID, i.o.Config.AppID
	switch {
	case c.APIAppID != app:
		return "it belongs to another app"
	case c.Team.ID != team:
		return "it belongs to another workspace"
	case c.User.TeamID != "" && c.User.TeamID != team:
		return "its user belongs to another workspace"
	case c.User.ID == "":
		return "it names no user"
	case c.View.AppID != "" && c.View.AppID != app:
		return "its window belongs to another app"
	}
	return ""
}

func (i *intake) isOurCommand(c *api.SlashCommand) bool {
	return c.TeamID == i.o.Config.TeamID && c.APIAppID == i.o.Config.AppID && c.UserID != ""
}

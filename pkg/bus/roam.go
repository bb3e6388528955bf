package bus

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// Clustered reports whether the connection knows more than one server. If so, this
// connection and those of others may move from one server to another at any time, and
// messages in flight can be lost while both sides stay up.
func (c *Conn) Clustered() bool { return c.clustered.Load() }

// Links returns the number of times that the connection was re-established. Messages in flight at
// such a moment may be lost.
func (c *Conn) Links() int { return int(c.links.Load()) }

// servers updates clustered from the number of servers that the connection knows.
func (c *Conn) servers(nc *nats.Conn) { c.clustered.Store(len(nc.Servers()) > 1) }

const (
	// reachEvery is the interval of the checks whether a server reaches the others, reachFor
	// the time for which it may not reach them, and moveAgain the minimum time between moves.
	reachEvery = 2 * time.Second
	reachFor   = 6 * time.Second
	moveAgain  = 15 * time.Second
)

// roam moves the connection to another server of a cluster if the current one is partitioned. A
// partitioned server keeps its clients, but their messages reach no other process. A process that
// stores data checks JetStream, which responds only if there is a majority. A worker listens for
// routers, and expects regular messages once it has received one.
func (c *Conn) roam(ctx context.Context, role string) error {
	check := func(ctx context.Context) error {
		_, err := c.js.AccountInfo(ctx)
		return err // logged by the loop below
	}
	if role == RoleWorker {
		var heard atomic.Pointer[time.Time]
		if _, err := c.subscribe(subjectRouter+"*", "", func(*nats.Msg) { heard.Store(new(time.Now())) }); err != nil {
			return fmt.Errorf("listening for routers: %w", err)
		}
		check = func(context.Context) error {
			if at := heard.Load(); at != nil && time.Since(*at) > reachEvery {
				return errors.New("no front door can be reached")
			}
			return nil
		}
	}
	c.wait.Go(func() {
		tick := time.NewTicker(reachEvery)
		defer tick.Stop()
		var r reach
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if !c.Clustered() || c.Ready() != nil {
				r.since = time.Time{}
				continue
			}
			look, cancel := context.WithTimeout(ctx, reachEvery)
			err := check(look)
			cancel()
			if ctx.Err() == nil && r.moves(time.Now(), err) {
				c.log.Warn("the NATS server cannot reach the rest of its cluster; connecting to another one", "server", c.nc.ConnectedUrlRedacted(), "error", err)
				_ = c.nc.ForceReconnect() // it fails when the connection is closed
			}
		}
	})
	return nil
}

// reach records since when the server has been partitioned, and the time of the last move.
type reach struct{ since, moved time.Time }

// moves records the result of a check and reports whether it is time to move.
func (r *reach) moves(now time.Time, err error) bool {
	switch {
	case err == nil:
		r.since = time.Time{}
	case r.since.IsZero():
		r.since = now
	case now.Sub(r.since) >= reachFor && now.Sub(r.moved) >= moveAgain:
		r.since, r.moved = time.Time{}, now
		return true
	}
	return false
}

package console

import (
	"net/http"
	"time"

	"github.com/callyard/callyard/internal/kit/sse"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// maxViewers bounds the open pages with live updates.
	maxViewers = 200
	// every is how often an open page renews its figures. They change all the time, so there
	// is no event to wait for; what many pages ask for within a second is asked for once.
	every = 2 * time.Second
	// streamFor ends a stream, so that the browser asks again and is refused where its session
	// has ended.
	streamFor   = 5 * time.Minute
	writeWithin = 10 * time.Second
)

// events answers with a stream of events named "changed", without content. What changed,
// pages load for themselves.
func (c *Console) events(w http.ResponseWriter, r *http.Request, _ Visit) error {
	if !c.enter() {
		return schema.Errorf(schema.KindUnavailable, "Too many pages receive live updates; reload the page to update it.")
	}
	defer c.leave()
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // nothing more is read, and the stream may last
	out := sse.Writer{W: w, Within: func(int) time.Duration { return writeWithin }}
	if out.Retry(3*time.Second) != nil || r.Method == http.MethodHead {
		return nil
	}
	tick, end := time.NewTicker(every), time.NewTimer(streamFor)
	defer tick.Stop()
	defer end.Stop()
	for {
		select {
		case <-r.Context().Done():
			return nil
		case <-c.closed:
			return nil
		case <-end.C:
			return nil
		case <-tick.C:
			if out.Event("changed", "") != nil {
				return nil
			}
		}
	}
}

func (c *Console) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.closed:
		return false
	default:
	}
	if c.viewers >= maxViewers {
		return false
	}
	c.viewers++
	return true
}

func (c *Console) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.viewers--
}

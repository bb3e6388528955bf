package console

import (
	"net/http"
	"time"

	"github.com/callyard/callyard/internal/kit/sse"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// maxViewers limits the number of open pages with live updates, and maxViewersEach those of one
	// person.
	maxViewers     = 200
	maxViewersEach = 20
	// every is the refresh interval of an open page. The figures change all the time, so there is
	// no event to wait for. Requests of many pages within a second share one answer.
	every = 2 * time.Second
	// streamFor limits the duration of a stream. The browser then reconnects, and is refused if
	// its session has ended.
	streamFor   = 5 * time.Minute
	writeWithin = 10 * time.Second
)

// events writes a stream of events named "changed", without content. The pages load the changes
// themselves.
func (c *Console) events(w http.ResponseWriter, r *http.Request, v Visit) error {
	if c.hasClosed() || !c.viewers.Take(v.Person) {
		return schema.Errorf(schema.KindUnavailable, "Too many pages receive live updates; reload the page to update it.")
	}
	defer c.viewers.Release(v.Person)
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // the request has been read, and the stream may last
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

func (c *Console) hasClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

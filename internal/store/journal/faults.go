package journal

import (
	"errors"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// errLost is why a writer or owner takes nothing more: somebody else has the log.
var errLost = errors.New("another writer has the log")

// errClosed is why a writer or owner takes nothing more: it was closed.
var errClosed = errors.New("it was closed")

// errSealed is why a log takes nothing more: it says so itself.
var errSealed = errors.New("the log is sealed")

// unavailable is for callers when a read or write did not succeed.
func unavailable(err error) error {
	if err == nil {
		return nil
	}
	var known *schema.Error
	if errors.As(err, &known) {
		return err
	}
	e := schema.Errorf(schema.KindUnavailable, "The journal of durable calls cannot be reached; see that NATS runs. (%w)", err)
	switch {
	case errors.Is(err, bus.ErrNotStoring):
		e = schema.Errorf(schema.KindUnavailable, "Durable calls cannot be stored at the moment; nothing was stored, and nothing runs. Send the request again later. (%w)", err)
		e.Retryable = true
	case errors.Is(err, bus.ErrRefused):
		e = schema.Errorf(schema.KindUnavailable, "The journal of durable calls takes no more: its streams are full; wait until calls have ended, or give them more space. (%w)", err)
		e.Retryable = true
	}
	e.RetryAfter = 5 * time.Second
	return e
}

// appendFault is for callers of an append.
func appendFault(id string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errLost):
		return schema.Errorf(schema.KindConflict, "Journal %s is written by somebody else now; nothing more is taken here. (%w)", id, err)
	case errors.Is(err, errSealed):
		return schema.Errorf(schema.KindConflict, "Journal %s is sealed; it takes no more calls. (%w)", id, err)
	}
	return unavailable(err)
}

func notFound(id string) error {
	return schema.Errorf(schema.KindNotFound, "There is no journal %s, or it is too old to be kept.", id)
}

func damaged(id string, err error) error {
	return schema.Errorf(schema.KindInternal, "A record of journal %s cannot be read. (%w)", id, err)
}

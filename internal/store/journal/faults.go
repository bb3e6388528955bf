package journal

import (
	"errors"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// errLost means that another writer took over the log, so this writer or owner accepts no appends.
var errLost = errors.New("another writer has the log")

// errClosed means that the writer or owner was closed.
var errClosed = errors.New("it was closed")

// errSealed means that the log ends with a seal.
var errSealed = errors.New("the log is sealed")

// unavailable returns the error for callers after a failed read or write.
func unavailable(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*schema.Error](err); ok {
		return err
	}
	e := schema.Errorf(schema.KindUnavailable, "The journal of durable calls cannot be reached or written; check that NATS is running and has disk space. (%w)", err)
	switch {
	case errors.Is(err, bus.ErrNotStoring):
		e = schema.Errorf(schema.KindUnavailable, "Durable calls cannot be stored at the moment; nothing was stored, and nothing will run. Send the request again later. (%w)", err)
		e.Retryable = true
	case errors.Is(err, bus.ErrRefused):
		e = schema.Errorf(schema.KindUnavailable, "The journal of durable calls is full; wait until calls have ended, or increase the size of its streams. (%w)", err)
		e.Retryable = true
	}
	e.RetryAfter = 5 * time.Second
	return e
}

// appendFault returns the error for callers after a failed append.
func appendFault(id schema.BatchID, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errLost):
		return schema.Errorf(schema.KindConflict, "Another process now writes journal %s; this process accepts no more of its calls. (%w)", id, err)
	case errors.Is(err, errSealed):
		return schema.Errorf(schema.KindConflict, "Journal %s is sealed; it accepts no more calls. (%w)", id, err)
	}
	return unavailable(err)
}

func notFound(id schema.BatchID) error {
	return schema.Errorf(schema.KindNotFound, "There is no journal %s, or it has been deleted.", id)
}

func damaged(id schema.BatchID, err error) error {
	return schema.Errorf(schema.KindInternal, "A record of journal %s cannot be read. (%w)", id, err)
}

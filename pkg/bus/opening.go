package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// openAttempt bounds one request while something is opened. A cluster that has not
	// chosen a leader yet drops requests: waiting longer for one answer would not help,
	// asking again does.
	openAttempt = 5 * time.Second
	// openPause lies before a request that JetStream was not ready for.
	openPause = 250 * time.Millisecond
	// codeNotAvailable is JetStream's for a cluster that is still coming up
	// (JSClusterNotAvailErr).
	codeNotAvailable jetstream.ErrorCode = 10008
)

// asked returns the first answer of JetStream to ask, which is repeated while there is
// none, until ctx ends. ask must do no harm when it is done twice.
func asked[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	for {
		attempt, cancel := context.WithTimeout(ctx, openAttempt)
		v, err := ask(attempt)
		cancel()
		var api *jetstream.APIError
		switch {
		case err == nil, ctx.Err() != nil:
			return v, err
		case errors.Is(err, context.DeadlineExceeded):
		case errors.As(err, &api) && api.ErrorCode == codeNotAvailable:
			select {
			case <-ctx.Done():
				return v, err
			case <-time.After(openPause):
			}
		default:
			return v, err
		}
	}
}

// openStream opens a stream, making it when it is missing and the connection may. One that is there
// stays as an operator may have set it, but for what the promises stand on.
func openStream(ctx context.Context, c *Conn, want jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := asked(ctx, func(ctx context.Context) (jetstream.Stream, error) {
		s, err := c.js.Stream(ctx, want.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			if !c.provisions() {
				return nil, errMissing("stream", want.Name, want.Description)
			}
			if s, err = c.js.CreateStream(ctx, want); err == nil {
				c.made("stream", want.Name)
			}
			if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another process was faster, and set it otherwise
				s, err = c.js.Stream(ctx, want.Name)
			}
		}
		return s, err // wrapped below
	})
	if err != nil {
		return nil, opening(err, "stream", want.Description)
	}
	got := s.CachedInfo().Config
	switch {
	case got.MaxMsgsPerSubject != want.MaxMsgsPerSubject:
		return nil, fmt.Errorf("the stream %s keeps %d messages for a subject and must keep %d (-1: all): change it with nats stream edit", want.Name, got.MaxMsgsPerSubject, want.MaxMsgsPerSubject)
	case got.Storage != want.Storage, got.PersistMode != want.PersistMode, got.Retention != want.Retention, want.AllowMsgTTL && !got.AllowMsgTTL:
		return nil, fmt.Errorf("the stream %s is not kept as it must be (file storage, default persistence, limits retention, message TTLs: %t): remove it while it is empty, and it is made again", want.Name, want.AllowMsgTTL)
	}
	return s, nil
}

// openBucket opens a bucket, making it when it is missing and the connection may: in files, with the replicas
// of the connection. One that is there stays as it is: an operator may have changed it.
func openBucket(ctx context.Context, c *Conn, want jetstream.KeyValueConfig) (jetstream.KeyValue, error) {
	want.Storage, want.Replicas = jetstream.FileStorage, c.replicas
	kv, err := asked(ctx, func(ctx context.Context) (jetstream.KeyValue, error) {
		kv, err := c.js.KeyValue(ctx, want.Bucket)
		if errors.Is(err, jetstream.ErrBucketNotFound) {
			if !c.provisions() {
				return nil, errMissing("table", want.Bucket, want.Description)
			}
			if kv, err = c.js.CreateKeyValue(ctx, want); err == nil {
				c.made("table", want.Bucket)
			}
			if errors.Is(err, jetstream.ErrBucketExists) { // another process was faster
				kv, err = c.js.KeyValue(ctx, want.Bucket)
			}
		}
		return kv, err // wrapped below
	})
	if err != nil {
		return nil, opening(err, "table", want.Description)
	}
	return kv, nil
}

func opening(err error, what, of string) error {
	if errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
		return fmt.Errorf("the NATS server has no JetStream, where %s are kept: start it with -js, or enable it for this account", of)
	}
	return fmt.Errorf("opening the %s of %s: %w", what, of, err)
}

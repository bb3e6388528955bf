package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
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
	// codeNoPeers is JetStream's for a stream that cannot be placed (JSClusterNoPeersErrF). It
	// says why in words; reasonOffline is the reason that passes: a server of the cluster was
	// not heard for a moment.
	codeNoPeers   jetstream.ErrorCode = 10005
	reasonOffline                     = "peer offline"
)

// passes says that JetStream may answer differently a moment later.
func passes(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) &&
		(api.ErrorCode == codeNotAvailable || api.ErrorCode == codeNoPeers && strings.Contains(api.Description, reasonOffline))
}

// asked returns the first answer of JetStream to ask, which is repeated while there is
// none, until ctx ends. ask must do no harm when it is done twice.
func asked[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	for {
		attempt, cancel := context.WithTimeout(ctx, openAttempt)
		v, err := ask(attempt)
		cancel()
		switch {
		case err == nil, ctx.Err() != nil:
			return v, err
		case errors.Is(err, context.DeadlineExceeded):
		case passes(err):
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
	s, err := openOrMake(ctx, c, "stream", want.Name, want.Description, jetstream.ErrStreamNotFound, jetstream.ErrStreamNameAlreadyInUse,
		func(ctx context.Context) (jetstream.Stream, error) { return c.js.Stream(ctx, want.Name) },
		func(ctx context.Context) (jetstream.Stream, error) { return c.js.CreateStream(ctx, want) })
	if err != nil {
		return nil, err
	}
	got := s.CachedInfo().Config
	switch {
	case got.MaxMsgsPerSubject != want.MaxMsgsPerSubject:
		return nil, fmt.Errorf("the stream %s keeps %d messages per subject but must keep %d (-1: all): change it with nats stream edit", want.Name, got.MaxMsgsPerSubject, want.MaxMsgsPerSubject)
	case got.Storage != want.Storage, got.PersistMode != want.PersistMode, got.Retention != want.Retention, want.AllowMsgTTL && !got.AllowMsgTTL:
		return nil, fmt.Errorf("the stream %s has the wrong storage settings (required: file storage, default persistence, limits retention, message TTLs: %t): remove it while it is empty, and it is created again", want.Name, want.AllowMsgTTL)
	}
	return s, nil
}

// openBucket opens a bucket, making it when it is missing and the connection may: in files, with the replicas
// of the connection. One that is there stays as it is: an operator may have changed it.
func openBucket(ctx context.Context, c *Conn, want jetstream.KeyValueConfig) (jetstream.KeyValue, error) {
	want.Storage, want.Replicas = jetstream.FileStorage, c.replicas
	return openOrMake(ctx, c, "table", want.Bucket, want.Description, jetstream.ErrBucketNotFound, jetstream.ErrBucketExists,
		func(ctx context.Context) (jetstream.KeyValue, error) { return c.js.KeyValue(ctx, want.Bucket) },
		func(ctx context.Context) (jetstream.KeyValue, error) { return c.js.CreateKeyValue(ctx, want) })
}

// openOrMake opens a stream or table, which what says, and makes it when it is missing and
// the connection may. missing and exists are the errors of open and create that say so; of
// says for people what is kept there.
func openOrMake[T any](ctx context.Context, c *Conn, what, name, of string, missing, exists error, open, create func(context.Context) (T, error)) (T, error) {
	v, err := asked(ctx, func(ctx context.Context) (T, error) {
		v, err := open(ctx)
		if !errors.Is(err, missing) {
			return v, err // wrapped below
		}
		if !c.provisions() {
			return v, errMissing(what, name, of)
		}
		if v, err = create(ctx); err == nil {
			c.made(what, name)
		} else if errors.Is(err, exists) { // another process was faster, and may have set it otherwise
			return open(ctx)
		}
		return v, err
	})
	if err != nil {
		err = opening(err, what, of)
	}
	return v, err
}

func opening(err error, what, of string) error {
	if errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
		return fmt.Errorf("the NATS server has no JetStream, which stores %s: start it with -js, or enable it for this account", of)
	}
	if errors.Is(err, nats.ErrNoResponders) {
		return fmt.Errorf("JetStream, which stores %s, does not respond: start the NATS server with -js, or enable it in its configuration (%w)", of, err)
	}
	return fmt.Errorf("opening the %s of %s: %w", what, of, err)
}

// Codes of JetStream for storage that cannot be set aside.
const (
	codeAccountFull jetstream.ErrorCode = 10002
	codeServerFull  jetstream.ErrorCode = 10023
	codeStorageFull jetstream.ErrorCode = 10047
)

func noSpace(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == codeStorageFull || api.ErrorCode == codeServerFull || api.ErrorCode == codeAccountFull)
}

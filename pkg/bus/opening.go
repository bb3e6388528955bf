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
	// openAttempt limits one request while a stream or table is opened. A cluster without a
	// leader drops requests, so a repeated request helps and a longer wait does not.
	openAttempt = 5 * time.Second
	// openPause is the pause before a request is repeated because JetStream was not ready.
	openPause = 250 * time.Millisecond
	// codeNotAvailable is JetStream's error code for a cluster that is still starting
	// (JSClusterNotAvailErr).
	codeNotAvailable jetstream.ErrorCode = 10008
	// codeNoPeers is JetStream's error code for a stream that cannot be placed
	// (JSClusterNoPeersErrF). Its description holds the reason. reasonOffline is the temporary
	// one: a server of the cluster was unreachable for a moment.
	codeNoPeers   jetstream.ErrorCode = 10005
	reasonOffline                     = "peer offline"
)

// isTransient reports whether an error of JetStream may be temporary.
func isTransient(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) &&
		(api.ErrorCode == codeNotAvailable || api.ErrorCode == codeNoPeers && strings.Contains(api.Description, reasonOffline))
}

// asked repeats ask until JetStream responds or ctx ends, and returns the first response. ask
// must be idempotent.
func asked[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	for {
		attempt, cancel := context.WithTimeout(ctx, openAttempt)
		v, err := ask(attempt)
		cancel()
		switch {
		case err == nil, ctx.Err() != nil:
			return v, err
		case errors.Is(err, context.DeadlineExceeded):
		case isTransient(err):
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

// openStream opens a stream, and creates it if it is missing and the connection is allowed to.
// An existing stream is left unchanged, because an operator may have configured it. It is an
// error if it lacks a setting that Callyard's guarantees depend on.
func openStream(ctx context.Context, c *Conn, want jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := openOrMake(ctx, c, "stream", want.Name, want.Name, want.Description, jetstream.ErrStreamNotFound, jetstream.ErrStreamNameAlreadyInUse,
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

// openBucket opens a bucket, and creates it if it is missing and the connection is allowed to, in
// file storage with the replicas of the connection. An existing bucket is left unchanged, because
// an operator may have configured it.
func openBucket(ctx context.Context, c *Conn, want jetstream.KeyValueConfig) (jetstream.KeyValue, error) {
	want.Storage, want.Replicas = jetstream.FileStorage, c.replicas
	return openOrMake(ctx, c, "table", kvStream+want.Bucket, want.Bucket, want.Description, jetstream.ErrBucketNotFound, jetstream.ErrBucketExists,
		func(ctx context.Context) (jetstream.KeyValue, error) { return c.js.KeyValue(ctx, want.Bucket) },
		func(ctx context.Context) (jetstream.KeyValue, error) { return c.js.CreateKeyValue(ctx, want) })
}

// openOrMake opens a stream or table (what), and creates it if it is missing and the connection
// is allowed to. stream is the name of the stream, also of a table. missing is the error of open if it does not exist, and exists the error of create
// if it already exists. of describes the content for people.
func openOrMake[T any](ctx context.Context, c *Conn, what, stream, name, of string, missing, exists error, open, create func(context.Context) (T, error)) (T, error) {
	v, err := asked(ctx, func(ctx context.Context) (T, error) {
		var v T
		err := c.denials.while(ctx, api+"STREAM.INFO."+stream, func(ctx context.Context) (err error) {
			v, err = open(ctx)
			return err
		})
		if !errors.Is(err, missing) {
			return v, err // wrapped below
		}
		if !c.provisions() {
			return v, errMissing(what, name, of)
		}
		if v, err = create(ctx); err == nil {
			c.logCreated(what, name)
		} else if errors.Is(err, exists) { // another process created it first, possibly with other settings
			return open(ctx)
		}
		return v, err
	})
	if c.provision && errors.Is(err, errDenied) {
		err = fmt.Errorf("%s (%s)", fixOperator, api+"STREAM.INFO."+stream)
	}
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

// JetStream's error codes for insufficient storage.
const (
	codeAccountFull jetstream.ErrorCode = 10002
	codeServerFull  jetstream.ErrorCode = 10023
	codeStorageFull jetstream.ErrorCode = 10047
)

func noSpace(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == codeStorageFull || api.ErrorCode == codeServerFull || api.ErrorCode == codeAccountFull)
}

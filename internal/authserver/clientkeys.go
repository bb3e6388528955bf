package authserver

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"
)

// clientKeys caches the key sets of clients that are stored elsewhere. It is safe for concurrent
// use.
type clientKeys struct {
	// configured fetches addresses of the configuration, documents those of a metadata document.
	configured, documents *http.Client
	now                   func() time.Time
	log                   *slog.Logger
	flight                singleflight.Group

	mu    sync.Mutex
	known map[string]keySet // by location
}

// keySet is a key set at the time of reading. err is the error of reading it.
type keySet struct {
	text []byte
	err  error
	read time.Time
}

// find returns the keys of a client that may verify a signature. The error is a *fault.
func (k *clientKeys) find(ctx context.Context, c *Client, id, algorithm string) ([]jose.JSONWebKey, error) {
	if c.Keys != nil {
		return found(verificationKeys(c.Keys, id, algorithm))
	}
	place, now := c.KeysURL+"\x00"+c.KeysFile, k.now()
	k.mu.Lock()
	set, ok := k.known[place]
	k.mu.Unlock()
	age := now.Sub(set.read)
	if ok && set.err == nil && age < keysKept {
		if keys, err := verificationKeys(set.text, id, algorithm); err == nil && len(keys) > 0 || age < keysCooldown {
			return found(keys, err)
		}
	}
	if ok && set.err != nil && age < documentFaultKept {
		return found(nil, set.err)
	}
	got := k.flight.DoChan(place, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), documentWithin)
		defer cancel()
		set := keySet{read: now}
		set.text, set.err = k.fetch(ctx, c)
		k.mu.Lock()
		defer k.mu.Unlock()
		if len(k.known) >= maxDocuments || k.known == nil {
			k.known = make(map[string]keySet)
		}
		k.known[place] = set
		return set.text, set.err
	})
	text, err := await[[]byte](ctx, got)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return found(nil, err)
	}
	return found(verificationKeys(text, id, algorithm))
}

// await returns the value of a shared call, unless ctx ends first.
func await[T any](ctx context.Context, got <-chan singleflight.Result) (value T, err error) {
	select {
	case <-ctx.Done():
		return value, ctx.Err()
	case r := <-got:
		value, _ = r.Val.(T)
		return value, r.Err
	}
}

func (k *clientKeys) fetch(ctx context.Context, c *Client) ([]byte, error) {
	switch {
	case c.KeysFile != "":
		return os.ReadFile(c.KeysFile)
	case c.Document:
		return readJSON(ctx, k.documents, c.KeysURL, maxClientKeys, k.log)
	}
	return readJSON(ctx, k.configured, c.KeysURL, maxClientKeys, k.log)
}

// found returns the keys, or an error suitable for the client.
func found(keys []jose.JSONWebKey, err error) ([]jose.JSONWebKey, error) {
	if err != nil {
		return nil, unread("the keys of the client", err)
	}
	return keys, nil
}

// unread returns the error for a client that cannot be authenticated, because something could not be read.
// After invalid_client, programs throw their tokens away, so a temporary reason must not lead to it.
func unread(what string, err error) *fault {
	if errors.As(err, new(temporaryError)) {
		return &fault{unavailableNow, what + " cannot be read at the moment"}
	}
	return &fault{badClient, what + " cannot be read"}
}

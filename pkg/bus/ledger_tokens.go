package bus

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Tokens is the stream of confirmation tokens, for installations without Redis.
// It knows hashes and bytes; what a token means is decided in internal/confirm.
// All methods are safe for concurrent use.
type Tokens struct{ c *Conn }

// OpenTokens opens the stream of tokens.
func OpenTokens(ctx context.Context, c *Conn) (*Tokens, error) {
	_, err := openStream(ctx, c, jetstream.StreamConfig{
		Name: streamTokens, Description: "confirmation tokens", Subjects: []string{subjectToken + "*"},
		Storage: jetstream.FileStorage, Replicas: c.replicas, MaxMsgsPerSubject: 1, AllowMsgTTL: true,
		Discard: jetstream.DiscardNew,
	})
	if err != nil {
		return nil, err
	}
	return &Tokens{c}, nil
}

// Put stores the value of a hash, forgotten after keep, when its revision is the
// given one; 0 means that there must be none. It returns the new revision;
// [ErrConflict] means that another writer was first.
func (t *Tokens) Put(ctx context.Context, hash string, value []byte, revision uint64, keep time.Duration) (uint64, error) {
	// The server counts whole seconds and takes no less than one.
	keep = max(keep.Truncate(time.Second), time.Second)
	return t.c.publishAfter(ctx, &nats.Msg{Subject: subjectToken + token(hash), Data: value}, revision, jetstream.WithMsgTTL(keep))
}

// Get reads the value of a hash and its revision from the stream's leader;
// [ErrNotFound] means that there is none.
func (t *Tokens) Get(ctx context.Context, hash string) (value []byte, revision uint64, err error) {
	m, err := t.c.leader(ctx, streamTokens, subjectToken+token(hash))
	return m.data, m.sequence, err
}

package bus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	sessionsKept = 24 * time.Hour // after they were opened, or last written
	sessionsMost = 64 << 20       // bytes of all of them
)

var sessionsTable = jetstream.KeyValueConfig{Bucket: bucketSessions, Description: "sessions of MCP clients", History: 1, TTL: sessionsKept, MaxBytes: sessionsMost}

// Session is what a front door needs to know of a session of an MCP client that another
// one opened.
type Session struct {
	Principal    string          `json:"principal"`
	Mount        string          `json:"mount,omitempty"` // the server of the endpoint, "" for all
	Version      string          `json:"version"`         // revision of the protocol
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	Name         string          `json:"name"`            // by which workers know it
	Level        string          `json:"level,omitempty"` // of log messages
}

// Sessions is the table of the sessions of MCP clients that all front doors share. A
// session is forgotten 24 hours after it was last written. It is safe for concurrent use;
// Close ends it.
type Sessions struct {
	c     *Conn
	kv    jetstream.KeyValue
	watch *StreamWatch
}

// OpenSessions opens the table. changed is called with the key of each session that is
// written or ended from now on and the revision of that write, on one goroutine; see
// [SessionKey]. Of several writes of one session in a row it may be told the last alone.
func OpenSessions(ctx context.Context, c *Conn, changed func(key string, revision uint64, ended bool)) (*Sessions, error) {
	kv, err := openBucket(ctx, c, sessionsTable)
	if err != nil {
		return nil, err
	}
	s := &Sessions{c: c, kv: kv}
	rows := kvSubject + bucketSessions + "."
	s.watch, err = c.watch(ctx, sessionsTable.Description, kvStream+bucketSessions, rows+">", func(m *nats.Msg, revision uint64, live bool) {
		if live {
			changed(strings.TrimPrefix(m.Subject, rows), revision, m.Header.Get(kvOperation) != "")
		}
	}, beginLast, true)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// SessionKey is the key of a session in the table: a digest of its id, so that who reads
// the table learns no id.
func SessionKey(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// Put stores a session, for every front door, and returns the revision of the write.
func (s *Sessions) Put(ctx context.Context, key string, v Session) (revision uint64, err error) {
	body, err := json.Marshal(v)
	if err != nil {
		return 0, fmt.Errorf("encoding the session: %w", err)
	}
	if revision, err = s.kv.Put(ctx, key, body); err != nil {
		return 0, fmt.Errorf("storing the session: %w", err)
	}
	return revision, nil
}

// Get returns a session and its revision; [ErrNotFound] for one that was never stored, has ended or was
// forgotten.
func (s *Sessions) Get(ctx context.Context, key string) (v Session, revision uint64, err error) {
	m, err := s.c.leader(ctx, kvStream+bucketSessions, kvSubject+bucketSessions+"."+key)
	switch {
	case errors.Is(err, ErrNotFound):
		return v, 0, err
	case err != nil:
		return v, 0, fmt.Errorf("reading a session: %w", err)
	case len(m.data) == 0: // the mark of one that has ended
		return v, 0, ErrNotFound
	}
	if err := json.Unmarshal(m.data, &v); err != nil {
		return v, 0, fmt.Errorf("decoding a session: %w", err)
	}
	return v, m.sequence, nil
}

// End removes a session, for every front door.
func (s *Sessions) End(ctx context.Context, key string) error {
	if err := s.kv.Delete(ctx, key); err != nil {
		return fmt.Errorf("removing the session: %w", err)
	}
	return nil
}

// Close ends the watch on the table and waits for it.
func (s *Sessions) Close() { s.watch.Close() }

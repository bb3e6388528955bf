package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// What the approver's faces outside its pages keep: who of Slack is whom, which
// message shows which approval, what was told to whom, and what counts once.

// Table is a durable table whose rows are changed by compare-and-set: of all who
// write a row at once one wins. It knows keys, rows and revisions; what a row
// means is decided above. All methods are safe for concurrent use.
type Table[T any] struct {
	c      *Conn
	bucket string
	what   string
	key    func(*T) string
	rows   *Records[T]
}

const (
	// messagesKept and noticesKept are longer than the ledger keeps an approval
	// after its last change. onceKept is longer than a signed request can be valid,
	// both ways.
	messagesKept = 31 * 24 * time.Hour
	onceKept     = 15 * time.Minute
	codesKept    = 15 * time.Minute
)

var (
	slackPeopleTable   = agingRows(bucketSlackPeople, "people in Slack", 0)
	slackCodesTable    = agingRows(bucketSlackCodes, "codes that connect people to Slack", codesKept)
	slackMessagesTable = agingRows(bucketSlackMessages, "messages in Slack", messagesKept)
	slackOnceTable     = agingRows(bucketSlackOnce, "requests of Slack that were taken", onceKept)
	noticesTable       = agingRows(bucketNotices, "events that were told", messagesKept)
)

// agingRows is the configuration of a bucket whose rows end by themselves; keep 0 is for ever.
func agingRows(bucket, what string, keep time.Duration) jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{Bucket: bucket, Description: what, History: 1, TTL: keep}
}

// OpenSlackPeople opens the table of who of Slack is which principal. It is kept
// for ever. key names a row; it must be made of plain tokens with dots between.
func OpenSlackPeople[T any](ctx context.Context, c *Conn, key func(*T) string) (*Table[T], error) {
	return openTable(ctx, c, slackPeopleTable, key)
}

// OpenSlackCodes opens the table of codes with which somebody in Slack says who
// they are; rows end by themselves after a quarter of an hour.
func OpenSlackCodes[T any](ctx context.Context, c *Conn, key func(*T) string) (*Table[T], error) {
	return openTable(ctx, c, slackCodesTable, key)
}

// OpenSlackMessages opens the table of messages in Slack that show approvals.
func OpenSlackMessages[T any](ctx context.Context, c *Conn, key func(*T) string) (*Table[T], error) {
	return openTable(ctx, c, slackMessagesTable, key)
}

// OpenNotices opens the table of what receivers of approval events were told.
func OpenNotices[T any](ctx context.Context, c *Conn, key func(*T) string) (*Table[T], error) {
	return openTable(ctx, c, noticesTable, key)
}

func openTable[T any](ctx context.Context, c *Conn, want jetstream.KeyValueConfig, key func(*T) string) (*Table[T], error) {
	rows, err := openRecords(ctx, c, want, key, nil)
	if err != nil {
		return nil, err
	}
	return &Table[T]{c: c, bucket: want.Bucket, what: want.Description, key: key, rows: rows}, nil
}

// TableKey makes one part of a key of any name.
func TableKey(name string) string { return token(name) }

// All returns every row as this process knows it, in no order. Rows that ended by
// age may still be among them.
func (t *Table[T]) All() []T { return t.rows.All() }

// Known returns a row as this process knows it, without asking anybody.
func (t *Table[T]) Known(key string) (T, bool) { return t.rows.Get(key) }

// Create writes a row where there is none; [ErrConflict] means that there is one.
func (t *Table[T]) Create(ctx context.Context, v T) (uint64, error) {
	return t.write(v, func(key string, body []byte) (uint64, error) { return t.rows.kv.Create(ctx, key, body) })
}

// Replace writes a row when its revision is still the given one; [ErrConflict]
// means that another writer was first.
func (t *Table[T]) Replace(ctx context.Context, v T, revision uint64) (uint64, error) {
	return t.write(v, func(key string, body []byte) (uint64, error) { return t.rows.kv.Update(ctx, key, body, revision) })
}

func (t *Table[T]) write(v T, store func(key string, body []byte) (uint64, error)) (uint64, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return 0, fmt.Errorf("encoding a row of %s: %w", t.what, err)
	}
	key := t.key(&v)
	revision, err := store(key, body)
	if err := conflictOf(err); err != nil {
		if errors.Is(err, ErrConflict) {
			return 0, err
		}
		return 0, fmt.Errorf("storing a row of %s: %w", t.what, err)
	}
	t.rows.keep(key, row[T]{value: v, revision: revision})
	return revision, nil
}

// conflictOf turns what JetStream says when another writer was first into [ErrConflict].
func conflictOf(err error) error {
	var api *jetstream.APIError
	if errors.Is(err, jetstream.ErrKeyExists) || errors.As(err, &api) && (api.ErrorCode == codeWrongLast || api.ErrorCode == codeWrongLastPlain) {
		return ErrConflict
	}
	return err
}

// Fresh reads a row and its revision from the table's leader, which has every
// write that was acknowledged; [ErrNotFound] means that there is none.
func (t *Table[T]) Fresh(ctx context.Context, key string) (v T, revision uint64, err error) {
	m, err := t.c.leader(ctx, "KV_"+t.bucket, "$KV."+t.bucket+"."+key)
	if err != nil {
		return v, 0, err
	}
	if len(m.data) == 0 { // the mark of a row that was removed
		return v, 0, ErrNotFound
	}
	if err := json.Unmarshal(m.data, &v); err != nil {
		return v, 0, fmt.Errorf("decoding a row of %s: %w", t.what, err)
	}
	t.rows.keep(key, row[T]{value: v, revision: m.sequence})
	return v, m.sequence, nil
}

// Delete removes a row.
func (t *Table[T]) Delete(ctx context.Context, key string) error { return t.rows.Delete(ctx, key) }

// Close ends the watch on the table and waits for it.
func (t *Table[T]) Close() { t.rows.Close() }

// Once remembers names for a quarter of an hour, for all processes.
type Once struct{ kv jetstream.KeyValue }

// OpenSlackOnce opens the store of requests of Slack that were taken.
func OpenSlackOnce(ctx context.Context, c *Conn) (*Once, error) {
	kv, err := openBucket(ctx, c, slackOnceTable)
	if err != nil {
		return nil, err
	}
	return &Once{kv}, nil
}

// Take returns nil to the first who takes a name, and [ErrConflict] to all others.
// After any other error the name may be taken or not.
func (o *Once) Take(ctx context.Context, name string) error {
	_, err := o.kv.Create(ctx, token(name), []byte{'1'})
	if err = conflictOf(err); err != nil && !errors.Is(err, ErrConflict) {
		return fmt.Errorf("noting a request of Slack: %w", err)
	}
	return err
}

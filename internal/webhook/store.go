package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Store keeps deliveries. internal/store/outbox implements it, and the tests have one in memory. A
// change expects a revision and fails with [bus.ErrConflict] if the revision differs.
// [bus.ErrNotFound] means that the delivery does not exist or belongs to another tenant. After any
// other error, the change may or may not have been made. An empty state means that a delivery has
// ended.
type Store interface {
	Create(ctx context.Context, tenant schema.TenantID, id string, state, body []byte) (revision uint64, err error)
	Replace(ctx context.Context, tenant schema.TenantID, id string, state []byte, revision uint64) (uint64, error)
	Remove(ctx context.Context, tenant schema.TenantID, id string, revision uint64) (uint64, error)
	Get(ctx context.Context, of schema.Tenants, id string) (state []byte, revision uint64, err error)
	Body(ctx context.Context, tenant schema.TenantID, id string) ([]byte, error)
	// Forget removes only the body. The delivery stays.
	Forget(ctx context.Context, tenant schema.TenantID, id string) error
	Watch(ctx context.Context, of schema.Tenants, f func(id string, state []byte, revision uint64)) (stop func(), err error)
}

// KeepFor is the time for which a store should keep an entry. A dead delivery can be retried until
// its event is that old.
const KeepFor = 10 * 24 * time.Hour

// state is the progress of a delivery, stored next to the body.
type state struct {
	V   int    `json:"v"`
	URL string `json:"url"`
	// Tenant is the tenant of the call or batch, in its stored form.
	Tenant schema.TenantID `json:"tenant,omitempty"`
	// Receiver is the host and port for limits per receiver.
	Receiver string `json:"receiver"`
	Type     string `json:"type"`
	// Size is the size of the body, in bytes.
	Size    int       `json:"size"`
	Created time.Time `json:"created"`
	// Attempts counts started attempts.
	Attempts int       `json:"attempts"`
	Next     time.Time `json:"next"`
	// Owner is the process that makes an attempt now. Its lease ends when other processes have seen no
	// change for the time of the lease, each by its own clock.
	Owner string `json:"owner,omitempty"`
	// By is the process that resumes the delivery if it is alive. The others wait longer.
	By   string `json:"by,omitempty"`
	Last string `json:"last,omitempty"` // reason why the last attempt failed
	// Dead is the reason why the delivery was given up, and Ended the time.
	Dead  string    `json:"dead,omitempty"`
	Ended time.Time `json:"ended,omitzero"`
	// Forgotten means that the body was deleted because the retention of the tenant ended.
	Forgotten bool `json:"forgotten,omitempty"`
}

const stateVersion = 1

func (s state) encode() []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic("webhook: encoding a state: " + err.Error()) // it holds only strings, numbers and times
	}
	return b
}

func decodeState(b []byte) (state, error) {
	var s state
	if err := json.Unmarshal(b, &s); err != nil {
		return state{}, fmt.Errorf("reading a delivery: %w", err)
	}
	if s.V != stateVersion {
		return state{}, fmt.Errorf("the delivery has version %d, but this process supports version %d", s.V, stateVersion)
	}
	return s, nil
}

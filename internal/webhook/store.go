package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Store keeps deliveries: internal/store/outbox does, and the tests' memory. Changes
// expect a revision and fail with [bus.ErrConflict] when it is another;
// [bus.ErrNotFound] is for what is not there, or of another tenant. Any other error leaves open whether
// the change was made. An empty state says that a delivery has ended.
type Store interface {
	Create(ctx context.Context, tenant schema.TenantID, id string, state, body []byte) (revision uint64, err error)
	Replace(ctx context.Context, tenant schema.TenantID, id string, state []byte, revision uint64) (uint64, error)
	Remove(ctx context.Context, tenant schema.TenantID, id string, revision uint64) (uint64, error)
	Get(ctx context.Context, of schema.Tenants, id string) (state []byte, revision uint64, err error)
	Body(ctx context.Context, tenant schema.TenantID, id string) ([]byte, error)
	// Forget removes the body alone; the delivery stays.
	Forget(ctx context.Context, tenant schema.TenantID, id string) error
	Watch(ctx context.Context, of schema.Tenants, f func(id string, state []byte, revision uint64)) (stop func(), err error)
}

// KeepFor is for how long a store should keep what is written to it. A delivery
// that was given up can be sent again until its event is so old.
const KeepFor = 10 * 24 * time.Hour

// state is where a delivery stands, as it is stored next to the body.
type state struct {
	V   int    `json:"v"`
	URL string `json:"url"`
	// Tenant is that of the call or batch that the event is of, in the stored form.
	Tenant schema.TenantID `json:"tenant,omitempty"`
	// Receiver is the host and port that limits count by.
	Receiver string `json:"receiver"`
	Type     string `json:"type"`
	// Size is the body's, in bytes.
	Size    int       `json:"size"`
	Created time.Time `json:"created"`
	// Attempts counts those that were begun.
	Attempts int       `json:"attempts"`
	Next     time.Time `json:"next"`
	// Owner is the process that makes an attempt now; its lease has ended when the
	// others saw no change for so long, each by its own clock.
	Owner string `json:"owner,omitempty"`
	// By is the process that resumes it, if it lives; the others hang back.
	By   string `json:"by,omitempty"`
	Last string `json:"last,omitempty"` // why the last attempt failed
	// Dead says why the delivery was given up, and Ended when.
	Dead  string    `json:"dead,omitempty"`
	Ended time.Time `json:"ended,omitzero"`
	// Forgotten says that the body is deleted, because the retention of the tenant has ended.
	Forgotten bool `json:"forgotten,omitempty"`
}

const stateVersion = 1

func (s state) encode() []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic("webhook: encoding a state: " + err.Error()) // strings, numbers and times of our own
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

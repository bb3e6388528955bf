package datakey

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// The sealed format is
//
//	magic | id of the data key | nonce | ciphertext and tag
//
// No JSON and no UTF-8 starts with magic, which distinguishes sealed data from data stored in the
// clear.
var magic = [...]byte{0xCA, 0xD5, 0x01}

const idBytes = 16

// Overhead is the number of bytes that [Ring.Seal] adds.
const Overhead = len(magic) + idBytes + chacha20poly1305.NonceSizeX + chacha20poly1305.Overhead

type keyID [idBytes]byte

// dataKey is the key of one tenant.
type dataKey struct {
	id     keyID
	tenant schema.TenantID // never empty
	aead   cipher.AEAD
}

// goneError means that data is lost permanently.
type goneError string

func (e goneError) Error() string { return string(e) }

// Gone lets packages detect the error without importing this one.
func (goneError) Gone() bool { return true }

// Errors of [Ring.Open].
var (
	// ErrDestroyed means that the data key was destroyed, or never belonged to this installation.
	ErrDestroyed error = goneError("the data was erased with its tenant")
	// ErrUnreadable means that the data was sealed for another place, or was changed.
	ErrUnreadable error = goneError("the stored data cannot be decrypted")
	// ErrNoKeys means that the data is sealed and this process has no keys.
	ErrNoKeys = errors.New("the stored data is encrypted, and encryption.key_file is not set")
)

// Ring holds the data keys of all tenants in one process. A nil *Ring seals nothing and opens only
// data that is not sealed. It is safe for concurrent use.
type Ring struct {
	keys  *credential.Keys
	table *table
	watch *bus.StreamWatch
	log   *slog.Logger

	making sync.Mutex // held while a key is created

	mu      sync.RWMutex
	of      map[schema.TenantID]*dataKey
	byID    map[keyID]*dataKey
	bad     map[schema.TenantID]error // tenants whose key cannot be unwrapped
	absent  map[keyID]time.Time       // ids that NATS did not have, with the time until which they are not looked up again
	dropped []func(schema.TenantID)
}

// Open opens the data keys. keys are the operator's, which wrap them; if nil, the ring is nil as
// well. With rewrap, the process wraps data keys again that are not wrapped with the newest of
// keys. ctx limits the opening. The caller closes the connection.
func Open(ctx context.Context, c *bus.Conn, keys *credential.Keys, rewrap bool, log *slog.Logger) (*Ring, error) {
	if keys == nil {
		return nil, nil
	}
	t, err := openTable(ctx, c)
	if err != nil {
		return nil, err
	}
	r := &Ring{keys: keys, table: t, log: log, of: map[schema.TenantID]*dataKey{}, byID: map[keyID]*dataKey{}, bad: map[schema.TenantID]error{}, absent: map[keyID]time.Time{}}
	if r.watch, err = t.watch(ctx, r.seen); err != nil {
		return nil, err
	}
	if err = r.unwrapped(); err == nil && rewrap {
		err = r.rewrap(ctx)
	}
	if err != nil {
		r.watch.Close()
		return nil, err
	}
	return r, nil
}

// Close ends the watch and waits for it.
func (r *Ring) Close() {
	if r != nil {
		r.watch.Close()
	}
}

// OnDestroyed calls f with each tenant whose data key is destroyed from now on. f must not block.
// It is for code that holds data of tenants in memory.
func (r *Ring) OnDestroyed(f func(schema.TenantID)) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropped = append(r.dropped, f)
}

// unwrapped returns an error if a data key cannot be unwrapped. The process should not start then,
// instead of serving only some tenants.
func (r *Ring) unwrapped() error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for tenant, err := range r.bad {
		return fmt.Errorf("the data key of tenant %q cannot be unwrapped: %w; add the key that encryption.key_file had before", tenant, err)
	}
	return nil
}

// seen applies a row of the table.
func (r *Ring) seen(row *row) {
	tenant := row.Tenant.OrDefault()
	if row.destroyed() {
		r.drop(tenant)
		return
	}
	k, err := r.unwrap(row)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.bad[tenant] = err
		r.log.Error("the data key of a tenant cannot be unwrapped", "tenant", tenant, "error", err)
		return
	}
	delete(r.bad, tenant)
	r.of[tenant], r.byID[k.id] = k, k
}

// drop removes the keys of a tenant, and calls the functions of OnDestroyed once.
func (r *Ring) drop(tenant schema.TenantID) {
	r.mu.Lock()
	delete(r.of, tenant)
	delete(r.bad, tenant)
	before := len(r.byID)
	maps.DeleteFunc(r.byID, func(_ keyID, k *dataKey) bool { return k.tenant == tenant })
	told := r.dropped
	if len(r.byID) == before {
		told = nil
	}
	r.mu.Unlock()
	for _, f := range told {
		f(tenant)
	}
}

// unwrap decrypts the key of a row.
func (r *Ring) unwrap(row *row) (*dataKey, error) {
	id, err := hex.DecodeString(row.ID)
	if err != nil || len(id) != idBytes {
		return nil, errors.New("its row has no id")
	}
	raw, err := r.keys.Open(row.Key, wrapPlace(row.Tenant, row.ID)...)
	if err != nil {
		return nil, err
	}
	aead, err := chacha20poly1305.NewX(raw)
	if err != nil {
		return nil, err
	}
	return &dataKey{keyID(id), row.Tenant.OrDefault(), aead}, nil
}

func wrapPlace(tenant schema.TenantID, id string) []string {
	return []string{"data key", string(tenant.OrDefault()), id}
}

// Sealed reports whether the bytes are output of [Ring.Seal].
func Sealed[B ~string | ~[]byte](stored B) bool {
	return len(stored) >= len(magic) && string(stored[:len(magic)]) == string(magic[:])
}

// Seal encrypts bytes of the tenant for a place, which is the kind and the id of the record. With a
// nil ring, and for no bytes, it returns them unchanged. It queries NATS if the tenant has no data
// key yet, which ctx limits. Errors are *schema.Error of KindUnavailable.
func (r *Ring) Seal(ctx context.Context, tenant schema.TenantID, plain []byte, place ...string) ([]byte, error) {
	if r == nil || len(plain) == 0 {
		return plain, nil
	}
	k, err := r.key(ctx, tenant.OrDefault())
	if err != nil {
		return nil, unavailable(err)
	}
	out := make([]byte, 0, len(plain)+Overhead)
	out = append(append(out, magic[:]...), k.id[:]...)
	nonce := make([]byte, chacha20poly1305.NonceSizeX)
	_, _ = rand.Read(nonce) // it cannot fail
	return k.aead.Seal(append(out, nonce...), nonce, plain, placed(place)), nil
}

// Open decrypts the output of Seal for the place, and returns other bytes unchanged. Errors are
// [ErrDestroyed], [ErrUnreadable], [ErrNoKeys], and others if NATS does not answer.
func (r *Ring) Open(ctx context.Context, stored []byte, place ...string) ([]byte, error) {
	if !Sealed(stored) {
		return stored, nil
	}
	if r == nil {
		return nil, ErrNoKeys
	}
	if len(stored) < Overhead {
		return nil, ErrUnreadable
	}
	k, err := r.find(ctx, keyID(stored[len(magic):][:idBytes]))
	if err != nil {
		return nil, err
	}
	sealed := stored[len(magic)+idBytes:]
	plain, err := k.aead.Open(nil, sealed[:chacha20poly1305.NonceSizeX], sealed[chacha20poly1305.NonceSizeX:], placed(place))
	if err != nil {
		return nil, ErrUnreadable
	}
	return plain, nil
}

// Gone reports whether an error of Open means that the data is lost permanently.
func Gone(err error) bool { return errors.As(err, new(goneError)) }

// placed encodes the parts of a place unambiguously.
func placed(parts []string) []byte {
	n := 0
	for _, p := range parts {
		n += len(p) + 1
	}
	b := make([]byte, 0, n)
	for _, p := range parts {
		b = append(append(b, p...), 0) // no id contains a NUL
	}
	return b
}

// key returns the data key of a tenant. It creates one if there is none.
func (r *Ring) key(ctx context.Context, tenant schema.TenantID) (*dataKey, error) {
	if k, err := r.known(tenant); k != nil || err != nil {
		return k, err
	}
	r.making.Lock()
	defer r.making.Unlock()
	if k, err := r.known(tenant); k != nil || err != nil {
		return k, err
	}
	row, err := r.table.take(ctx, tenant, r.newRow)
	if err != nil {
		return nil, err
	}
	r.seen(row)
	return r.known(tenant)
}

func (r *Ring) known(tenant schema.TenantID) (*dataKey, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.of[tenant], r.bad[tenant]
}

// believed is the time for which a missing data key is not looked up again. mostAbsent limits the
// number of such keys. Lists with records of a deleted tenant use its key often.
const (
	believed   = time.Minute
	mostAbsent = 1024
)

// find returns the data key with the id. A key that this process does not know yet was created at
// another process a moment ago, or was destroyed.
func (r *Ring) find(ctx context.Context, id keyID) (*dataKey, error) {
	r.mu.RLock()
	k, until := r.byID[id], r.absent[id]
	r.mu.RUnlock()
	switch {
	case k != nil:
		return k, nil
	case time.Now().Before(until):
		return nil, ErrDestroyed
	}
	rows, err := r.table.all(ctx)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if rows[i].ID == hex.EncodeToString(id[:]) {
			return r.unwrap(&rows[i])
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.absent) >= mostAbsent {
		clear(r.absent)
	}
	r.absent[id] = time.Now().Add(believed)
	return nil, ErrDestroyed
}

func unavailable(err error) error {
	return schema.Errorf(schema.KindUnavailable, "The data key of the tenant is not available, so nothing of the call can be stored. (%w)", err).RetryableAfter(0)
}

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

// What is sealed is
//
//	magic | id of the data key | nonce | ciphertext and tag
//
// No JSON and no UTF-8 begins like it, so what was stored in the clear is told from it.
var magic = [...]byte{0xCA, 0xD5, 0x01}

const idBytes = 16

// Overhead is how many bytes [Ring.Seal] adds.
const Overhead = len(magic) + idBytes + chacha20poly1305.NonceSizeX + chacha20poly1305.Overhead

type keyID [idBytes]byte

// dataKey is the key of one tenant.
type dataKey struct {
	id     keyID
	tenant schema.TenantID // never empty
	aead   cipher.AEAD
}

// goneError says that data cannot be had any more, whoever asks again.
type goneError string

func (e goneError) Error() string { return string(e) }

// Gone tells it to packages that this one imports.
func (goneError) Gone() bool { return true }

// Errors of [Ring.Open].
var (
	// ErrDestroyed: the data key is destroyed, or was never one of this installation.
	ErrDestroyed error = goneError("the data was erased with its tenant")
	// ErrUnreadable: it was sealed for another place, or changed.
	ErrUnreadable error = goneError("the stored data cannot be decrypted")
	// ErrNoKeys: it is sealed, and this process has no keys.
	ErrNoKeys = errors.New("the stored data is encrypted, and encryption.key_file is not set")
)

// Ring is the data keys of all tenants, as one process has them. A nil *Ring seals nothing,
// and opens what is not sealed. It is safe for concurrent use.
type Ring struct {
	keys  *credential.Keys
	table *table
	watch *bus.StreamWatch
	log   *slog.Logger

	making sync.Mutex // one key is made at a time

	mu      sync.RWMutex
	of      map[schema.TenantID]*dataKey
	byID    map[keyID]*dataKey
	bad     map[schema.TenantID]error // keys that cannot be unwrapped
	absent  map[keyID]time.Time       // ids that NATS did not have, until when that is believed
	dropped []func(schema.TenantID)
}

// Open opens the data keys. keys are the operator's, which wrap them; nil: there are none, and
// so is the ring. A process with rewrap wraps data keys with the newest of keys where they are
// wrapped with another. ctx bounds the opening; the connection stays the caller's.
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

// OnDestroyed has f called with each tenant whose data key is destroyed from now on, on a
// goroutine that must not be blocked: for whoever has data of tenants in memory.
func (r *Ring) OnDestroyed(f func(schema.TenantID)) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropped = append(r.dropped, f)
}

// unwrapped returns why a data key cannot be used, where one cannot: it is better that a
// process does not start than that it serves some tenants only.
func (r *Ring) unwrapped() error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for tenant, err := range r.bad {
		return fmt.Errorf("the data key of tenant %q cannot be unwrapped: %w; add the key that encryption.key_file had before", tenant, err)
	}
	return nil
}

// seen takes in a row of the table.
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

// drop forgets the keys of a tenant, and tells once who has data of it.
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

// Sealed reports whether the bytes are those of [Ring.Seal].
func Sealed[B ~string | ~[]byte](stored B) bool {
	return len(stored) >= len(magic) && string(stored[:len(magic)]) == string(magic[:])
}

// Seal encrypts bytes of the tenant for a place: the kind of the record, and its id. Of a nil
// ring, and for no bytes, it returns them as they are. It asks NATS when the tenant has no
// data key yet; ctx bounds that. Errors are *schema.Error of KindUnavailable.
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
	_, _ = rand.Read(nonce) // it never fails
	return k.aead.Seal(append(out, nonce...), nonce, plain, placed(place)), nil
}

// Open decrypts what Seal returned for the place, and returns other bytes as they are. Errors
// are [ErrDestroyed], [ErrUnreadable], [ErrNoKeys], and others where NATS does not answer.
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

// Gone reports whether an error of Open says that the data cannot be had any more, whoever
// asks again.
func Gone(err error) bool { return errors.As(err, new(goneError)) }

// placed writes the parts of a place so that they cannot be confused with each other.
func placed(parts []string) []byte {
	n := 0
	for _, p := range parts {
		n += len(p) + 1
	}
	b := make([]byte, 0, n)
	for _, p := range parts {
		b = append(append(b, p...), 0) // no id has a NUL
	}
	return b
}

// key returns the data key of a tenant, and makes it when there is none.
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

// believed is how long NATS is not asked again for a data key that it did not have, and
// mostAbsent bounds their number: those who list records of a tenant that was
// deleted meet its key often.
const (
	believed   = time.Minute
	mostAbsent = 1024
)

// find returns the data key with the id. One that this process has not seen yet was made by
// another a moment ago, or it is destroyed.
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

package journal

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Entry is the stored entry of an idempotency key.
type Entry struct {
	// Fingerprint is the digest of the request. If another request uses the same key, the caller of
	// [Store.Remember] must refuse it.
	Fingerprint string `json:"fingerprint"`
	// CallID, or Journal and Index, identify the call or batch that the key created.
	CallID  schema.CallID  `json:"call_id,omitempty"`
	Journal schema.BatchID `json:"journal,omitempty"`
	Index   uint64         `json:"index"`
	At      time.Time      `json:"at"`
	// Held means that the entry was stored before its call was held. If the ledger does not have the
	// call, its front door has died in between, or could not hold it.
	Held bool `json:"held,omitempty"`
	// Write identifies the write, so that a writer can recognize it.
	Write string `json:"write,omitempty"`
}

// KeyHash returns the stored form of a principal's idempotency key. The key is hashed, because it may
// be a secret of the caller. The hash includes the tenant unless it is the default one, so principals
// of the same name in two tenants have separate keys.
func KeyHash(who schema.PrincipalID, key string) string {
	b := binary.AppendUvarint(nil, uint64(len(who.Name)))
	b = append(append(b, who.Name...), key...)
	if tenant := who.Tenant.Stored(); tenant != "" {
		mac := hmac.New(sha256.New, []byte(tenant))
		mac.Write(b)
		return hex.EncodeToString(mac.Sum(nil))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Remember stores the entry of a key for keep, unless one exists. It returns the effective entry and
// whether this call stored it. hash is a [KeyHash].
func (s *Store) Remember(ctx context.Context, hash string, e Entry, keep time.Duration) (kept Entry, first bool, err error) {
	e.Write = rand.Text()
	if e.At.IsZero() {
		e.At = time.Now().UTC()
	}
	data, err := json.Marshal(&e)
	if err != nil {
		return kept, false, fmt.Errorf("encoding the entry: %w", err)
	}
	for range 3 {
		err = s.keys.put(ctx, hash, data, keep)
		if err == nil {
			return e, true, nil
		}
		if errors.Is(err, bus.ErrRefused) {
			return kept, false, unavailable(err)
		}
		look, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookFor)
		kept, again := s.Recall(look, hash)
		cancel()
		switch {
		case again == nil:
			return kept, kept.Write == e.Write, nil
		case schema.KindOf(again) != schema.KindNotFound:
			return kept, false, unavailable(errors.Join(err, again))
		case !errors.Is(err, bus.ErrConflict):
			// The write may still arrive, so the caller must not run the call.
			return kept, false, unavailable(err)
		}
		// The conflicting entry has just expired.
	}
	return kept, false, unavailable(err)
}

// Recall returns the entry of a key. Errors: [schema.KindNotFound]; [schema.KindOutcomeUnknown] if the
// entry was lost.
func (s *Store) Recall(ctx context.Context, hash string) (Entry, error) {
	var e Entry
	data, err := s.keys.get(ctx, hash)
	if isNotFound(err) && s.lostKey != nil && s.lostKey(hash) {
		return e, LostKey()
	}
	if isNotFound(err) {
		return e, schema.Errorf(schema.KindNotFound, "The idempotency key is unknown, or has been deleted.")
	}
	if err != nil {
		return e, unavailable(err)
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return e, schema.Errorf(schema.KindInternal, "The record of this idempotency key cannot be read. (%w)", err)
	}
	return e, nil
}

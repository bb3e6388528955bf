package journal

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// secretLen is how many bytes the secret has: when it was made, in milliseconds since
// 1970, and 32 that are random.
const secretLen = 8 + 32

// Secret returns what the ids of durable calls are made with: random bytes that all
// front doors of a fabric share, from its first start on. They must not be changed.
func (s *Store) Secret() []byte { return s.secret }

// SecretMade returns when the secret was made. Ids from before were made with another one,
// which is lost.
func (s *Store) SecretMade() time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(s.secret)))
}

// findSecret reads the secret, and makes it where there is none. One that was lost is
// taken from a manifest.
func (s *Store) findSecret(ctx context.Context) ([]byte, error) {
	secret, _, err := s.leases.get(ctx, secretName)
	if errors.Is(err, bus.ErrNotFound) {
		secret = repeatedSecret(func(f func(*Manifest)) { s.Each(schema.AllTenants(), f) })
		if secret == nil {
			secret = binary.BigEndian.AppendUint64(make([]byte, 0, secretLen), uint64(time.Now().UnixMilli()))[:secretLen]
			if _, err := rand.Read(secret[8:]); err != nil {
				return nil, fmt.Errorf("creating the secret of the journals: %w", err)
			}
		}
		// Whoever was faster counts; and the answer to a write may be lost.
		if _, stored := s.leases.put(ctx, secretName, secret, 0, 0); stored != nil {
			if secret, _, err = s.leases.get(ctx, secretName); err != nil {
				return nil, unavailable(errors.Join(stored, err))
			}
		}
		err = nil
	}
	if err != nil {
		return nil, unavailable(err)
	}
	if len(secret) != secretLen {
		return nil, fmt.Errorf("the secret of the journals has %d bytes, not %d; restore the data of NATS from a backup", len(secret), secretLen)
	}
	return secret, nil
}

// repeatedSecret is the secret as a manifest has it, or nil.
func repeatedSecret(each func(func(*Manifest))) (secret []byte) {
	each(func(m *Manifest) {
		if secret == nil && len(m.Secret) == secretLen {
			secret = bytes.Clone(m.Secret)
		}
	})
	return secret
}

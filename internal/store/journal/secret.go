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

// secretLen is the length of the secret in bytes: its creation time in milliseconds since 1970, and 32
// random bytes.
const secretLen = 8 + 32

// Secret returns the secret for generating ids of durable calls: random bytes that all front doors of a
// fabric share, created at its first start. The caller must not modify it.
func (s *Store) Secret() []byte { return s.secret }

// SecretMade returns the creation time of the secret. Older ids were made with another secret, which is
// lost.
func (s *Store) SecretMade() time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(s.secret)))
}

// findSecret reads the secret, and creates it if there is none. A lost secret is restored from a
// manifest.
func (s *Store) findSecret(ctx context.Context) ([]byte, error) {
	secret, _, err := s.leases.get(ctx, secretName)
	if errors.Is(err, bus.ErrNotFound) {
		secret = repeatedSecret(func(f func(*Manifest)) { s.Each(schema.AllTenants(), f) })
		if secret == nil {
			secret = binary.BigEndian.AppendUint64(make([]byte, 0, secretLen), uint64(time.Now().UnixMilli()))[:secretLen]
			_, _ = rand.Read(secret[8:]) // it never fails
		}
		// Another process may have been faster, or the reply may be lost, so read it again.
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

// repeatedSecret returns the copy of the secret in a manifest, or nil.
func repeatedSecret(each func(func(*Manifest))) (secret []byte) {
	each(func(m *Manifest) {
		if secret == nil && len(m.Secret) == secretLen {
			secret = bytes.Clone(m.Secret)
		}
	})
	return secret
}

package authserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/pkg/bus"
)

// Times of signing keys.
const (
	// signsFor is how long a key signs.
	signsFor = 30 * 24 * time.Hour
	// ahead is how long a key is published before it signs: longer than anybody keeps the
	// published ones.
	ahead = 24 * time.Hour
	// publishedAfter is how long a key is published after it signed last: longer than any
	// access token is valid.
	publishedAfter = 3 * time.Hour
	// ringKept is how long a process goes by what it read.
	ringKept = time.Minute
	ringRow  = "ring"
	ringWait = 10 * time.Second
)

// keyring is the keys of the server, which all approvers share.
type keyring struct {
	rows *bus.Bucket
	keys *credential.Keys
	now  func() time.Time

	mu   sync.Mutex
	view *ring
	read time.Time
}

// ring is the keys as they are at one time. It is never changed.
type ring struct {
	signer jose.Signer
	public []byte // the JWKS
	secret []byte // makes refresh tokens
}

// storedRing is what a row holds, encrypted.
type storedRing struct {
	Keys   []storedKey `json:"keys"` // in the order in which they sign
	Secret []byte      `json:"secret"`
}

type storedKey struct {
	ID    string    `json:"id"`
	Begin time.Time `json:"begin"`
	Key   []byte    `json:"key"` // PKCS #8
}

// get returns the keys, and makes new ones where that is due.
func (k *keyring) get(ctx context.Context) (*ring, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	if k.view != nil && now.Sub(k.read) < ringKept {
		return k.view, nil
	}
	ctx, cancel := context.WithTimeout(ctx, ringWait)
	defer cancel()
	stored, err := k.load(ctx, now)
	if err != nil {
		return nil, fmt.Errorf("the keys of the authorization server: %w", err)
	}
	view, err := stored.at(now)
	if err != nil {
		return nil, err
	}
	k.view, k.read = view, now
	return view, nil
}

// load reads the row, and writes it where a key is missing. Whoever loses a race reads what
// the winner wrote.
func (k *keyring) load(ctx context.Context, now time.Time) (*storedRing, error) {
	for {
		stored, revision, err := k.fetch(ctx)
		if err != nil {
			return nil, err
		}
		changed, err := stored.renew(now)
		if err != nil || !changed {
			return stored, err
		}
		plain, err := json.Marshal(stored) //nolint:gosec // it is sealed before it is stored
		if err != nil {
			return nil, err
		}
		sealed, err := k.keys.Seal(plain, ringPlace...)
		if err != nil {
			return nil, err
		}
		if revision == 0 {
			_, err = k.rows.Create(ctx, ringRow, sealed)
		} else {
			_, err = k.rows.Replace(ctx, ringRow, sealed, revision)
		}
		if err == nil || !errors.Is(err, bus.ErrConflict) {
			return stored, err
		}
	}
}

var ringPlace = []string{"authorization server", "keys"}

// fetch reads the row; its revision is 0 where there is none.
func (k *keyring) fetch(ctx context.Context) (*storedRing, uint64, error) {
	sealed, revision, err := k.rows.Fresh(ctx, ringRow)
	if errors.Is(err, bus.ErrNotFound) {
		return &storedRing{}, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	plain, err := k.keys.Open(sealed, ringPlace...)
	if err != nil {
		return nil, 0, err
	}
	stored := &storedRing{}
	return stored, revision, json.Unmarshal(plain, stored)
}

// renew adds the key that signs next when it is time to publish it, and drops old ones.
func (r *storedRing) renew(now time.Time) (changed bool, err error) {
	if len(r.Secret) == 0 {
		r.Secret = make([]byte, 32)
		_, _ = rand.Read(r.Secret) // it never fails
		changed = true
	}
	begin := now
	if n := len(r.Keys); n > 0 {
		begin = r.Keys[n-1].Begin.Add(signsFor)
		if begin.Add(-ahead).After(now) {
			return changed, nil
		}
		if soonest := now.Add(ahead); begin.Before(soonest) {
			begin = soonest // nobody looked for a while: the old key signs until others can know the new one
		}
	}
	key, err := newKey(begin)
	if err != nil {
		return false, err
	}
	r.Keys = append(r.Keys, key)
	for len(r.Keys) > 2 && r.Keys[1].Begin.Add(publishedAfter).Before(now) {
		r.Keys = r.Keys[1:]
	}
	return true, nil
}

func newKey(begin time.Time) (storedKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return storedKey{}, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return storedKey{}, err
	}
	id := make([]byte, 12)
	_, _ = rand.Read(id)
	return storedKey{ID: base64.RawURLEncoding.EncodeToString(id), Begin: begin.UTC(), Key: der}, nil
}

// at is the ring as it is used: the last key that has begun signs, and keys that signed not
// long ago are published with those that will.
func (r *storedRing) at(now time.Time) (*ring, error) {
	view := &ring{secret: r.Secret}
	var set jose.JSONWebKeySet
	for i, k := range r.Keys {
		if i+1 < len(r.Keys) && r.Keys[i+1].Begin.Add(publishedAfter).Before(now) {
			continue
		}
		parsed, err := x509.ParsePKCS8PrivateKey(k.Key)
		if err != nil {
			return nil, err
		}
		key, ok := parsed.(*ecdsa.PrivateKey)
		if !ok {
			return nil, errors.New("a key of the authorization server is not one of ECDSA")
		}
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: &key.PublicKey, KeyID: k.ID, Algorithm: string(jose.ES256), Use: "sig"})
		if i > 0 && k.Begin.After(now) {
			continue
		}
		o := (&jose.SignerOptions{}).WithType(accessTokenType)
		if view.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: k.ID}}, o); err != nil {
			return nil, err
		}
	}
	var err error
	view.public, err = json.Marshal(set)
	return view, err
}

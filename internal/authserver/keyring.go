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
	"golang.org/x/sync/singleflight"

	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/pkg/bus"
)

// Times of signing keys.
const (
	// signsFor is the time for which a key signs.
	signsFor = 30 * 24 * time.Hour
	// ahead is the time for which a key is published before it signs. It exceeds the time for
	// which clients cache published keys.
	ahead = 24 * time.Hour
	// publishedAfter is the time for which a key is published after it signed last. It exceeds the
	// lifetime of access tokens.
	publishedAfter = 3 * time.Hour
	// ringKept is the time for which a process caches the keys.
	ringKept = time.Minute
	ringRow  = "ring"
	ringWait = 10 * time.Second
)

// keyring manages the keys of the server, which all approvers share.
type keyring struct {
	rows   *bus.Bucket
	keys   *credential.Keys
	now    func() time.Time
	flight singleflight.Group // reads the row

	mu   sync.Mutex
	view *keySnapshot
	read time.Time
}

// keySnapshot is the set of keys at one time. It is immutable.
type keySnapshot struct {
	signer jose.Signer
	public []byte // the JWKS
	secret []byte // makes refresh tokens
}

// storedRing is the content of a row, which is stored encrypted.
type storedRing struct {
	Keys   []storedKey `json:"keys"` // in the order in which they sign
	Secret []byte      `json:"secret"`
}

type storedKey struct {
	ID    string    `json:"id"`
	Begin time.Time `json:"begin"`
	Key   []byte    `json:"key"` // PKCS #8
}

// get returns the keys, and rotates them if that is due. Concurrent calls share one read of the row, and
// each ends with its own context: while NATS is away they would wait one after the other.
func (k *keyring) get(ctx context.Context) (*keySnapshot, error) {
	k.mu.Lock()
	view, read := k.view, k.read
	k.mu.Unlock()
	if view != nil && k.now().Sub(read) < ringKept {
		return view, nil
	}
	return await[*keySnapshot](ctx, k.flight.DoChan(ringRow, func() (any, error) { return k.renew(context.WithoutCancel(ctx)) }))
}

// renew reads the row and caches its keys.
func (k *keyring) renew(ctx context.Context) (*keySnapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, ringWait)
	defer cancel()
	now := k.now()
	stored, err := k.load(ctx, now)
	if err != nil {
		return nil, fmt.Errorf("the keys of the authorization server: %w", err)
	}
	view, err := stored.at(now)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.view, k.read = view, now
	return view, nil
}

// load reads the row, and writes it if a key is missing. A process that loses the race reads the
// row of the winner.
func (k *keyring) load(ctx context.Context, now time.Time) (*storedRing, error) {
	for {
		stored, former, revision, err := k.fetch(ctx)
		if err != nil {
			return nil, err
		}
		changed, err := stored.renew(now)
		if err != nil || !changed && !former {
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

// fetch reads the row. former reports whether it is not encrypted with the newest key. Its revision is
// 0 if there is none.
func (k *keyring) fetch(ctx context.Context) (stored *storedRing, former bool, revision uint64, err error) {
	sealed, revision, err := k.rows.Fresh(ctx, ringRow)
	if errors.Is(err, bus.ErrNotFound) {
		return &storedRing{}, false, 0, nil
	}
	if err != nil {
		return nil, false, 0, err
	}
	plain, err := k.keys.Open(sealed, ringPlace...)
	if err != nil {
		return nil, false, 0, err
	}
	stored = &storedRing{}
	return stored, !k.keys.Newest(sealed), revision, json.Unmarshal(plain, stored)
}

// renew adds the next signing key when it must be published, and removes old keys.
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
			begin = soonest // rotation is late: the old key signs until clients can know the new one
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

// at returns the keys to use at a time. The newest key that has begun signs. Future keys and those
// that signed recently are published.
func (r *storedRing) at(now time.Time) (*keySnapshot, error) {
	view := &keySnapshot{secret: r.Secret}
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

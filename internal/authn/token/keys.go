package token

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// cooldown is the minimum time between two fetches of an issuer's keys.
	cooldown = 30 * time.Second
	// refreshAfter is the age at which used keys are fetched again. staleAfter is the age up to
	// which they are used if that fails, so that an issuer that is down for an hour blocks no
	// caller.
	refreshAfter = 5 * time.Minute
	staleAfter   = 2 * time.Hour
	fetchWithin  = 10 * time.Second
	// maxKeys limits the number of keys of an issuer, and minRSA and maxRSA their size in bits.
	maxKeys = 100
	minRSA  = 2048
	maxRSA  = 8192
)

var errUnknownKey = errors.New("the token is signed with a key that its issuer does not have")

// keySet holds the public keys of an issuer. It is safe for concurrent use. Close ends its goroutines.
type keySet struct {
	fetch func(context.Context) ([]byte, error)
	log   *slog.Logger

	mu      sync.Mutex
	keys    []jose.JSONWebKey // replaced as a whole
	got     time.Time         // time of the last successful fetch
	tried   time.Time         // time of the start of the last fetch
	fetched chan struct{}     // closed at the end of the fetch in progress; nil if there is none
	failed  error             // error of the last fetch

	ctx  context.Context
	stop context.CancelFunc
	wait sync.WaitGroup
}

func newKeySet(fetch func(context.Context) ([]byte, error), log *slog.Logger) *keySet {
	k := &keySet{fetch: fetch, log: log}
	k.ctx, k.stop = context.WithCancel(context.Background())
	return k
}

func (k *keySet) close() {
	k.stop()
	k.wait.Wait()
}

// find returns the keys that may have made a signature: those with the id and the algorithm. A
// token without an id matches if the issuer has exactly one key for the algorithm. Unknown keys are
// fetched, within ctx; see [cooldown]. issued is the time that the token claims to be issued at, or
// zero: a token that is newer than the last fetch may have a key that is newer as well.
func (k *keySet) find(ctx context.Context, id, algorithm string, issued time.Time) ([]jose.JSONWebKey, error) {
	arrived := time.Now()
	for looked := false; ; looked = true {
		k.mu.Lock()
		now := time.Now()
		usable := !k.got.IsZero() && now.Sub(k.got) < staleAfter
		if usable {
			if found := Matching(k.keys, id, algorithm); len(found) > 0 {
				if now.Sub(k.got) >= refreshAfter {
					k.beginLocked(now)
				}
				k.mu.Unlock()
				return found, nil
			}
		}
		if looked || !k.beginLocked(now) {
			failed, tried := k.failed, k.tried
			unknown := id != "" && !slices.ContainsFunc(k.keys, func(key jose.JSONWebKey) bool { return key.KeyID == id })
			k.mu.Unlock()
			switch {
			case failed != nil: // the issuer may have added the key since the last successful fetch
				return nil, errAway
			case unknown && tried.Before(arrived) && !issued.Before(tried.Truncate(time.Second)): // issuers round down to seconds
				return nil, errTooNew
			}
			return nil, errUnknownKey
		}
		fetched := k.fetched
		k.mu.Unlock()
		select {
		case <-fetched:
		case <-ctx.Done():
			return nil, errAway
		}
	}
}

var (
	errAway   = errors.New("the keys of the token's issuer cannot be fetched")
	errTooNew = errors.New("the token is newer than the keys of its issuer that are known")
)

// beginLocked reports whether a fetch is in progress. It starts one unless the last one is too
// recent. k.mu is held.
func (k *keySet) beginLocked(now time.Time) bool {
	if k.fetched != nil {
		return true
	}
	if !k.tried.IsZero() && now.Sub(k.tried) < cooldown || k.ctx.Err() != nil {
		return false
	}
	k.tried, k.fetched = now, make(chan struct{})
	k.wait.Go(k.refresh)
	return true
}

// refresh fetches the keys. After an error the old ones stay.
func (k *keySet) refresh() {
	ctx, cancel := context.WithTimeout(k.ctx, fetchWithin)
	defer cancel()
	raw, err := k.fetch(ctx)
	var keys []jose.JSONWebKey
	if err == nil {
		keys, err = ReadKeys(raw)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failed = err; err == nil {
		k.keys, k.got = keys, time.Now()
	} else if k.ctx.Err() == nil {
		k.log.Warn("the keys of an issuer of tokens cannot be fetched", "error", err, "age", time.Since(k.got).Round(time.Second), "known", len(k.keys))
	}
	close(k.fetched)
	k.fetched = nil
}

// ReadKeys parses a key set (RFC 7517). It ignores keys that cannot sign with an accepted algorithm.
func ReadKeys(raw []byte) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(raw, &set); err != nil {
		return nil, fmt.Errorf("reading the key set: %w", err)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("the key set has %d keys; at most %d are read", len(set.Keys), maxKeys)
	}
	var keys []jose.JSONWebKey
	for _, one := range set.Keys {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(one) != nil || !key.Valid() || !key.IsPublic() || key.Use != "" && key.Use != "sig" || family(&key) == "" {
			continue
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("the key set has no public key that can sign tokens")
	}
	return keys, nil
}

// family returns the algorithm of a key as far as its type determines it: "ES256", or "S" for RSA.
// It is empty for keys that are not accepted.
func family(key *jose.JSONWebKey) string {
	switch p := key.Key.(type) {
	case *rsa.PublicKey:
		if bits := p.N.BitLen(); bits >= minRSA && bits <= maxRSA {
			return "S"
		}
	case *ecdsa.PublicKey:
		return map[int]string{256: "ES256", 384: "ES384", 521: "ES512"}[p.Curve.Params().BitSize]
	case ed25519.PublicKey:
		return "EdDSA"
	}
	return ""
}

// Matching returns the keys that may have made a signature: those with the id and the algorithm.
// Without an id it returns the key for the algorithm if there is exactly one.
func Matching(keys []jose.JSONWebKey, id, algorithm string) []jose.JSONWebKey {
	var found []jose.JSONWebKey
	for i := range keys {
		of := family(&keys[i])
		fits := of == algorithm || of == "S" && (strings.HasPrefix(algorithm, "RS") || strings.HasPrefix(algorithm, "PS"))
		if fits && (keys[i].Algorithm == "" || keys[i].Algorithm == algorithm) && (id == "" || keys[i].KeyID == id) {
			found = append(found, keys[i])
		}
	}
	if id == "" && len(found) > 1 {
		return nil
	}
	return found[:min(len(found), maxSameID)]
}

// maxSameID limits the number of keys tried for one token.
const maxSameID = 2

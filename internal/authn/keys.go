package authn

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Key is one API key as the configuration holds it.
type Key struct {
	// Name is the name of the principal; it is unique.
	Name string `yaml:"name"`
	// Owner is the person or team behind the key; empty means Name.
	Owner string `yaml:"owner"`
	// Groups the principal is in.
	Groups []string `yaml:"groups"`
	// Hash is "sha256:" and the hex SHA-256 of the key; see [Hash].
	Hash string `yaml:"hash"`
	// Expires is when the key ends; the zero time means never.
	Expires time.Time `yaml:"expires"`
}

// Local is the principal of everybody where no keys are configured. A front door
// like that serves loopback only.
const Local = "local"

// maxCredential is more than any key has; longer ones are not hashed.
const maxCredential = 512

// Keys is the table of API keys. It is safe for concurrent use.
type Keys struct {
	bySum    map[[sha256.Size]byte]*entry
	failures *failures
}

type entry struct {
	sum       [sha256.Size]byte
	principal schema.Principal
	expires   time.Time
}

// NewKeys reads the configured keys. The error names every key that is wrong.
func NewKeys(keys []Key) (*Keys, error) {
	k := &Keys{bySum: make(map[[sha256.Size]byte]*entry, len(keys)), failures: newFailures()}
	var faults []error
	names := make(map[string]bool, len(keys))
	for i, key := range keys {
		fault := func(format string, args ...any) {
			faults = append(faults, fmt.Errorf("API key %d (%q): "+format, append([]any{i + 1, key.Name}, args...)...))
		}
		switch {
		case key.Name == "" || len(key.Name) > 128:
			fault("give it a name of 1 to 128 characters")
		case key.Name == Local:
			fault("%q is the name of callers without a key; choose another", Local)
		case names[key.Name]:
			fault("there is another key of that name; names are unique")
		}
		names[key.Name] = true
		sum, err := parseHash(key.Hash)
		if err != nil {
			fault("%w", err)
			continue
		}
		if other := k.bySum[sum]; other != nil {
			fault("it has the same hash as key %q; make a key for each", other.principal.Name)
			continue
		}
		k.bySum[sum] = &entry{
			sum: sum, expires: key.Expires,
			principal: schema.Principal{Name: key.Name, Owner: key.Owner, Groups: slices.Clone(key.Groups)},
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return k, nil
}

func parseHash(hash string) (sum [sha256.Size]byte, err error) {
	text, ok := strings.CutPrefix(hash, hashPrefix)
	raw, decodeErr := hex.DecodeString(text)
	if !ok || decodeErr != nil || len(raw) != len(sum) {
		// What stands there may be a key itself, so it is not repeated.
		return sum, errors.New("hash must be sha256: and 64 hex digits, the hash of the key and not the key")
	}
	copy(sum[:], raw)
	return sum, nil
}

// Configured says whether there are any keys.
func (k *Keys) Configured() bool { return len(k.bySum) > 0 }

// Authenticate returns the principal of the request, taken from
// "Authorization: Bearer KEY" or "X-API-Key: KEY". Without configured keys it is
// the principal [Local]. The error is a *schema.Error of KindUnauthenticated, or
// of KindQuota after too many wrong keys from one address.
func (k *Keys) Authenticate(r *http.Request) (schema.Principal, error) {
	if !k.Configured() {
		return schema.Principal{Name: Local}, nil
	}
	credential, err := credential(r.Header)
	if err != nil {
		return schema.Principal{}, err
	}
	refusal := "The API key is not known here. Check that it is whole and meant for this front door."
	if len(credential) <= maxCredential {
		sum := sha256.Sum256([]byte(credential))
		e := k.bySum[sum]
		if e != nil && subtle.ConstantTimeCompare(e.sum[:], sum[:]) == 1 {
			if e.expires.IsZero() || time.Now().Before(e.expires) {
				return e.principal, nil
			}
			refusal = fmt.Sprintf("The API key %q expired on %s. Ask the operator for a new one.", e.principal.Name, e.expires.UTC().Format(time.DateOnly))
		} else if damaged(credential) {
			refusal = "The API key is damaged: its checksum is wrong. Copy it again, whole."
		}
	}
	if wait := k.failures.count(r.RemoteAddr); wait > 0 {
		e := schema.Errorf(schema.KindQuota, "Too many wrong API keys came from your address. Wait, then send a valid key.")
		e.Retryable, e.RetryAfter = true, wait
		return schema.Principal{}, e
	}
	return schema.Principal{}, schema.Errorf(schema.KindUnauthenticated, "%s", refusal)
}

// credential finds the one credential of a request.
func credential(h http.Header) (string, error) {
	authorization, keys := h["Authorization"], h["X-Api-Key"]
	if len(authorization)+len(keys) == 0 {
		return "", schema.Errorf(schema.KindUnauthenticated, "Send your API key as Authorization: Bearer KEY, or as X-API-Key: KEY.")
	}
	found := ""
	for _, value := range authorization {
		scheme, key, _ := strings.Cut(value, " ")
		if key = strings.TrimSpace(key); !strings.EqualFold(scheme, "Bearer") || key == "" {
			return "", schema.Errorf(schema.KindUnauthenticated, "The Authorization header must be Bearer and an API key.")
		}
		if found != "" && found != key {
			return "", errSeveral()
		}
		found = key
	}
	for _, key := range keys {
		if key = strings.TrimSpace(key); found != "" && found != key {
			return "", errSeveral()
		}
		found = key
	}
	if found == "" {
		return "", schema.Errorf(schema.KindUnauthenticated, "The X-API-Key header is empty; send an API key.")
	}
	return found, nil
}

func errSeveral() error {
	return schema.Errorf(schema.KindUnauthenticated, "The request carries different API keys; send one.")
}

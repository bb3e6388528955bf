package token

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// MaxLength is the maximum length of a token, in bytes.
	MaxLength = 16 << 10
	// skew is the tolerated difference between the clocks of an issuer and this process.
	skew = 30 * time.Second
	// Limits of the cache of accepted tokens.
	rememberedFor  = time.Minute
	rememberedMost = 10_000
	dayLong        = 24 * time.Hour
)

// Verifier checks access tokens. It is safe for concurrent use. Close ends its goroutines.
type Verifier struct {
	issuers map[string]*issuer // by the claim iss
	names   map[string]struct{}
	client  *http.Client

	mu    sync.RWMutex
	known map[[sha256.Size]byte]*Token
}

// issuer is one entry of the configuration with its keys.
type issuer struct {
	c          *settings.Issuer
	algorithms []string
	types      []string
	lifetime   time.Duration
	scopes     scope.Set // of tokens without a scope claim
	keys       *keySet
}

// Token is the content of an accepted token. It is never changed.
type Token struct {
	// Principal does not have a grant yet.
	Principal schema.Principal
	// Issuer is the configured name of the issuer, Subject the claim sub, Tenant the configured
	// tenant claim, and Client the client that the token was issued to. Grant is the grant of the
	// token if its issuer is an approver.
	Issuer, Subject, Client, Grant string
	Tenant                         schema.TenantID
	Scopes                         scope.Set
	Expires                        time.Time
	// Thumbprint is x5t#S256 of the client certificate that the token is bound to (RFC 8705). The
	// token is valid only with that certificate. It is "" for a bearer token.
	Thumbprint string

	audiences  []string
	everywhere bool // it has one of the configured audiences
	until      time.Time
}

// New returns a verifier for validated issuers; see [settings.FrontDoor]. It does not contact them yet.
func New(issuers []settings.Issuer, log *slog.Logger) (*Verifier, error) {
	v := &Verifier{issuers: make(map[string]*issuer, len(issuers)), names: make(map[string]struct{}), client: newClient(), known: make(map[[sha256.Size]byte]*Token)}
	for n := range issuers {
		c := issuers[n]
		i := &issuer{c: &c, algorithms: c.Algorithms, lifetime: c.MaxLifetime}
		if len(i.algorithms) == 0 {
			i.algorithms = settings.TokenAlgorithms()
		}
		for _, t := range c.Types {
			i.types = append(i.types, settings.TokenType(t))
		}
		if len(i.types) == 0 {
			i.types = []string{settings.AccessTokenType}
		}
		if i.lifetime == 0 {
			i.lifetime = dayLong
		}
		var err error
		if i.scopes, err = scope.Parse(c.Scopes); err != nil {
			return nil, err
		}
		i.keys = newKeySet(source(&c, v.client), log.With("issuer", c.Name))
		v.issuers[c.Issuer], v.names[c.Name] = i, struct{}{}
	}
	return v, nil
}

// Close ends fetches in progress and waits for them.
func (v *Verifier) Close() {
	for _, i := range v.issuers {
		i.keys.close()
	}
	v.client.CloseIdleConnections()
}

// Configured reports whether there are any issuers.
func (v *Verifier) Configured() bool { return v != nil && len(v.issuers) > 0 }

// Names reports whether a name belongs to a principal of one of the issuers.
func (v *Verifier) Names(principal string) bool {
	if v == nil {
		return false
	}
	prefix, _, ok := strings.Cut(principal, ":")
	_, known := v.names[prefix]
	return ok && known
}

// Looks reports whether a credential has the format of a token, and not of a key.
func Looks(credential string) bool {
	return strings.HasPrefix(credential, "eyJ") && strings.Count(credential, ".") == 2
}

// Verify checks a token for a resource, which is an absolute URL. A token for a parent of the URL
// is valid as well. The error is a *schema.Error of KindUnauthenticated, or of KindUnavailable
// while the keys of the issuer cannot be fetched. Neither contains a part of the token.
func (v *Verifier) Verify(ctx context.Context, raw, resource string) (*Token, error) {
	if len(raw) > MaxLength {
		return nil, refused("it is longer than %d bytes", MaxLength)
	}
	sum := sha256.Sum256([]byte(raw))
	v.mu.RLock()
	t := v.known[sum]
	v.mu.RUnlock()
	now := time.Now()
	if t == nil || !now.Before(t.until) {
		var err error
		if t, err = v.check(ctx, raw, now); err != nil {
			return nil, err
		}
		v.remember(sum, t, now)
	}
	if !t.isFor(resource) {
		return nil, refused("it was issued for another resource; request one for %s", resource)
	}
	return t, nil
}

// remember caches an accepted token. If the cache is full, it removes the expired tokens, or all of
// them if none has expired.
func (v *Verifier) remember(sum [sha256.Size]byte, t *Token, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.known) >= rememberedMost {
		for s, old := range v.known {
			if !now.Before(old.until) {
				delete(v.known, s)
			}
		}
		if len(v.known) > rememberedMost/2 {
			clear(v.known)
		}
	}
	v.known[sum] = t
}

// isFor reports whether the token was issued for the resource or one of its parents.
func (t *Token) isFor(resource string) bool {
	if t.everywhere {
		return true
	}
	for _, a := range t.audiences {
		a = strings.TrimSuffix(a, "/")
		if rest, ok := strings.CutPrefix(resource, a); ok && a != "" && (rest == "" || rest[0] == '/') && strings.Contains(a, "://") {
			return true
		}
	}
	return false
}

func refused(format string, args ...any) *schema.Error {
	return schema.Errorf(schema.KindUnauthenticated, "The access token is not accepted: "+format+".", args...)
}

func keyFault(err error) *schema.Error {
	switch {
	case errors.Is(err, errAway):
		return tryLater("the keys of its issuer cannot be fetched")
	case errors.Is(err, errTooNew):
		return tryLater("it was issued after the keys of its issuer were last fetched, with a key that was not among them")
	}
	return refused("%s", err)
}

func tryLater(why string) *schema.Error {
	return schema.Errorf(schema.KindUnavailable, "The access token cannot be checked at the moment, because %s. Try again in a moment.", why).RetryableAfter(cooldown)
}

package credential

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/upstream/oauth"
	"github.com/callyard/callyard/pkg/schema"
)

// mostExchanged limits the number of tokens that a process keeps.
const mostExchanged = 10_000

// Exchange configures the exchange of a caller's access token for one of a server (RFC 8693). One
// of Resource and Audience may be "".
type Exchange struct {
	Resource, Audience string
	// ConsentURL is the page for consent that the authorization server may require, or "" if
	// there is none.
	ConsentURL string

	mu       sync.Mutex
	metadata *oauth.Metadata
	kept     map[[sha256.Size]byte]*exchanged // by the digest of the caller's token
}

// exchanged is the token received for a caller's token.
type exchanged struct {
	credential Credential
	until      time.Time // zero means a single use
}

// subject is implemented by the grant of a principal that signed in with an access token.
type subject interface {
	// Subject returns the token and its expiry.
	Subject() (token string, expires time.Time)
}

// exchange returns a token for the server in exchange for the caller's. refused is as for
// [Book.Get]. Results are cached by the digest of the caller's token, not by its subject, because
// two tokens of one person may have different permissions.
func (b *Book) exchange(ctx context.Context, s *Server, who *schema.Principal, refused uint64) (Credential, error) {
	var token string
	var expires time.Time
	if of, ok := who.Grant.(subject); ok {
		token, expires = of.Subject()
	}
	if token == "" {
		return Credential{}, schema.Errorf(schema.KindForbidden, "Server %q takes a token that is exchanged for the caller's access token, and this call has none: it was sent with an API key, or it waited, and Callyard keeps no caller's token. Send it with an access token, and neither held, nor in a batch, nor for later. The call did not start.", s.ID)
	}
	key := sha256.Sum256([]byte(token))
	if c, ok := s.Exchange.find(key, refused, b.now()); ok {
		return c, nil
	}
	return b.once(ctx, s, fmt.Sprint("exchange\x00", s.ID, "\x00", string(key[:]), "\x00", refused), func(ctx context.Context) (Credential, error) {
		if c, ok := s.Exchange.find(key, refused, b.now()); ok { // another caller was faster
			return c, nil
		}
		ctx, cancel := context.WithTimeout(ctx, redeeming)
		defer cancel()
		m, err := s.Exchange.endpoint(ctx, s.OAuth)
		if err != nil {
			return Credential{}, unavailable(s, err)
		}
		got, err := s.OAuth.Exchange(ctx, m, token, s.Exchange.Resource, s.Exchange.Audience, s.Scopes)
		if err != nil {
			return Credential{}, s.notExchanged(err)
		}
		now := b.now()
		r := row{Token: got}
		c := s.credential(&r)
		s.Exchange.keep(key, c, end(got, now, expires), now)
		return c, nil
	})
}

// end returns the time until which a token is used: shortly before its expiry, but not longer than
// the caller's token is valid. Zero means for one call.
func end(got *oauth.Token, now, caller time.Time) time.Time {
	if got.Expires.IsZero() {
		return time.Time{}
	}
	until := got.Expires.Add(-min(early, got.Expires.Sub(now)/10))
	if !caller.IsZero() && caller.Before(until) {
		return caller
	}
	return until
}

// notExchanged returns the error of a call whose token exchange failed. It does not repeat the text
// of the authorization server.
func (s *Server) notExchanged(err error) error {
	var refused *oauth.Refused
	switch {
	case oauth.NeedsPerson(err) && s.Exchange.ConsentURL != "":
		e := schema.Errorf(schema.KindConnectRequired, "Server %q requires that you agree first, at %s. The call did not start.", s.ID, s.Exchange.ConsentURL)
		e.ConnectURL = s.Exchange.ConsentURL
		return e
	case errors.As(err, &refused) && refused.Code != "" && refused.Code != "invalid_client" && refused.Code != "server_error" && refused.Code != "temporarily_unavailable":
		return schema.Errorf(schema.KindForbidden, "Your access token was not exchanged for one for server %q: %w. The call did not start.", s.ID, err)
	}
	return unavailable(s, err)
}

// find returns the cached token for a caller's token, unless it is the refused one.
func (x *Exchange) find(key [sha256.Size]byte, refused uint64, now time.Time) (Credential, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.kept[key]
	switch {
	case e == nil:
		return Credential{}, false
	case !now.Before(e.until) || e.credential.Version == refused:
		delete(x.kept, key)
		return Credential{}, false
	}
	return e.credential, true
}

// keep caches a token until it expires. If the cache is full, it evicts expired tokens, or else any
// of them.
func (x *Exchange) keep(key [sha256.Size]byte, c Credential, until, now time.Time) {
	if !now.Before(until) {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.kept == nil {
		x.kept = make(map[[sha256.Size]byte]*exchanged)
	}
	if len(x.kept) >= mostExchanged {
		for k, e := range x.kept {
			if !now.Before(e.until) {
				delete(x.kept, k)
			}
		}
	}
	for k := range x.kept {
		if len(x.kept) < mostExchanged {
			break
		}
		delete(x.kept, k)
	}
	x.kept[key] = &exchanged{c, until}
}

// endpoint returns the metadata of the issuer. It is read once.
func (x *Exchange) endpoint(ctx context.Context, c *oauth.Client) (*oauth.Metadata, error) {
	x.mu.Lock()
	m := x.metadata
	x.mu.Unlock()
	if m != nil {
		return m, nil
	}
	m, err := oauth.AuthorizationServer(ctx, c.HTTP, c.Issuer)
	if err == nil {
		x.mu.Lock()
		x.metadata = m
		x.mu.Unlock()
	}
	return m, err
}

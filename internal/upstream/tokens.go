package upstream

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/callyard/callyard/internal/upstream/oauth"
)

const (
	// fetchTime limits one fetch of a token, independent of its callers.
	fetchTime = 30 * time.Second
	// early is the time before expiry at which a token is replaced, or a tenth of its lifetime if
	// that is less.
	early = time.Minute
	// fresh is the age below which a refused token is not replaced, because a new one would be
	// refused as well.
	fresh = 5 * time.Second
	// mostScopes limits the number of scopes, which a server could otherwise increase without end.
	mostScopes = 100
)

// tokens keeps one access token and fetches the next one, once for all waiting callers. It is safe
// for concurrent use.
type tokens struct {
	// fetch obtains a token with the scopes.
	fetch  func(ctx context.Context, scopes []string) (*oauth.Token, error)
	flight singleflight.Group

	mu     sync.Mutex
	now    *oauth.Token
	since  time.Time // of the current token
	until  time.Time // end of use; zero means until it is refused
	scopes []string  // to request; never changed in place
}

// get returns the current token, or a new one.
func (t *tokens) get(ctx context.Context) (*oauth.Token, error) {
	t.mu.Lock()
	now, until, scopes := t.now, t.until, t.scopes
	t.mu.Unlock()
	if now != nil && (until.IsZero() || time.Now().Before(until)) {
		return now, nil
	}
	return t.fetchWith(ctx, scopes, now)
}

// fetchWith joins the fetch in progress with these scopes, or starts one, which replaces the token old. It
// returns when ctx ends, but the fetch continues.
func (t *tokens) fetchWith(ctx context.Context, scopes []string, old *oauth.Token) (*oauth.Token, error) {
	got := t.flight.DoChan(strings.Join(scopes, " "), func() (any, error) {
		t.mu.Lock()
		now, has := t.now, t.scopes
		t.mu.Unlock()
		if now != nil && now != old && slices.Equal(has, scopes) {
			return now, nil // a fetch has ended since the caller looked
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTime)
		defer cancel()
		token, err := t.fetch(ctx, scopes)
		if err != nil {
			return nil, err
		}
		t.keep(token, scopes)
		return token, nil
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-got:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*oauth.Token), nil
	}
}

// keep stores a token and its scopes, unless a token with more scopes arrived in the meantime.
func (t *tokens) keep(token *oauth.Token, scopes []string) {
	now := time.Now()
	var until time.Time
	if life := token.Expires.Sub(now); !token.Expires.IsZero() {
		until = token.Expires.Add(-min(early, life/10))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(scopes) < len(t.scopes) {
		return
	}
	t.now, t.since, t.until, t.scopes = token, now, until, scopes
}

// refused handles a refusal of the token sent. It reports whether another one is available.
func (t *tokens) refused(ctx context.Context, sent string) (bool, error) {
	t.mu.Lock()
	now, since, scopes := t.now, t.since, t.scopes
	t.mu.Unlock()
	switch {
	case now != nil && now.Access != sent:
		return true, nil // another caller replaced it already
	case now != nil && time.Since(since) < fresh:
		return false, nil
	}
	_, err := t.fetchWith(ctx, scopes, now)
	return err == nil, err
}

// widen requests more scopes. If the server grants a token, all later requests have them too. It
// reports whether a new token is available, which is not the case if all of them were requested
// before.
func (t *tokens) widen(ctx context.Context, more []string) (bool, error) {
	t.mu.Lock()
	old, scopes := t.now, slices.Clone(t.scopes)
	t.mu.Unlock()
	known := len(scopes)
	for _, s := range more {
		if !slices.Contains(scopes, s) && len(scopes) < mostScopes {
			scopes = append(scopes, s)
		}
	}
	if len(scopes) == known {
		return false, nil
	}
	_, err := t.fetchWith(ctx, scopes, old)
	return err == nil, err
}

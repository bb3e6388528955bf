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
	// fetchTime bounds one fetch of a token, whoever waits for it.
	fetchTime = 30 * time.Second
	// early is how long before its end a token is replaced; a tenth of its life if less.
	early = time.Minute
	// fresh is the age below which a token that the server refuses is not replaced: another
	// one would be refused too.
	fresh = 5 * time.Second
	// mostScopes bounds what servers that name ever more scopes can make us ask for.
	mostScopes = 100
)

// tokens keeps one access token and fetches the next, once for everybody who waits. It is
// safe for concurrent use.
type tokens struct {
	// fetch gets a token with the scopes.
	fetch  func(ctx context.Context, scopes []string) (*oauth.Token, error)
	flight singleflight.Group

	mu     sync.Mutex
	now    *oauth.Token
	since  time.Time // of now
	until  time.Time // now is used; zero: until it is refused
	scopes []string  // to ask for
}

// get returns the token that is kept, or a new one.
func (t *tokens) get(ctx context.Context) (*oauth.Token, error) {
	t.mu.Lock()
	now, until := t.now, t.until
	t.mu.Unlock()
	if now != nil && (until.IsZero() || time.Now().Before(until)) {
		return now, nil
	}
	return t.fetchOne(ctx)
}

// fetchOne joins the fetch under way with the scopes asked for so far, or begins one.
func (t *tokens) fetchOne(ctx context.Context) (*oauth.Token, error) {
	t.mu.Lock()
	scopes := slices.Clone(t.scopes)
	t.mu.Unlock()
	return t.fetchWith(ctx, scopes)
}

// fetchWith joins the fetch under way with these scopes, or begins one. It ends with ctx, and
// the fetch does not.
func (t *tokens) fetchWith(ctx context.Context, scopes []string) (*oauth.Token, error) {
	got := t.flight.DoChan(strings.Join(scopes, " "), func() (any, error) {
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

// keep keeps a token, and the scopes with which it was got, unless one with more scopes came
// meanwhile.
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

// refused says that the server does not take the token sent. It reports whether there is
// another one now.
func (t *tokens) refused(ctx context.Context, sent string) (bool, error) {
	t.mu.Lock()
	now, since := t.now, t.since
	t.mu.Unlock()
	switch {
	case now != nil && now.Access != sent:
		return true, nil // somebody was faster
	case now != nil && time.Since(since) < fresh:
		return false, nil
	}
	_, err := t.fetchOne(ctx)
	return err == nil, err
}

// widen asks for more scopes, and for them ever after where the server grants a token. It
// reports whether there is another token now: not where all of them were asked for before.
func (t *tokens) widen(ctx context.Context, more []string) (bool, error) {
	t.mu.Lock()
	scopes := slices.Clone(t.scopes)
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
	_, err := t.fetchWith(ctx, scopes)
	return err == nil, err
}

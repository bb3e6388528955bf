package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/upstream/oauth"
)

// person is a user who connects to the server when it requires that, with a browser that
// accepts everything.
type person struct {
	address string
	client  *oauth.Client

	mu     sync.Mutex
	token  *oauth.Token
	grant  *oauth.Grant
	scopes []string // the requested scopes
}

func newPerson(address string, g *given) *person {
	c := &oauth.Client{MetadataURL: metadataURL, RedirectURL: redirectURL, Name: "Callyard", HTTP: oauth.NewHTTPClient(address)}
	if g.ID != "" {
		c.ID, c.Issuer = g.ID, g.Issuer
	}
	if g.Secret != "" {
		c.Secret = func() (string, error) { return g.Secret, nil }
	}
	return &person{address: address, client: c}
}

// Authorize sets the token, if there is one.
func (p *person) Authorize(_ context.Context, h http.Header) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.token != nil {
		h.Set("Authorization", "Bearer "+p.token.Access)
	}
	return nil
}

// Refused connects. After a 403 it does so only if the server requires scopes that were not
// requested before.
func (p *person) Refused(ctx context.Context, r launch.Refusal) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := oauth.ParseChallenge(r.Header)
	if r.Status == http.StatusForbidden {
		if c.Error != "insufficient_scope" || !slices.ContainsFunc(c.Scopes, func(s string) bool { return !slices.Contains(p.scopes, s) }) {
			return false, nil
		}
		for _, s := range p.scopes {
			if !slices.Contains(c.Scopes, s) {
				c.Scopes = append(c.Scopes, s)
			}
		}
	}
	resource, err := oauth.Discover(ctx, p.client.HTTP, p.address, p.client.Issuer, c)
	if err != nil {
		return false, err
	}
	request, err := p.client.Begin(ctx, resource)
	if err != nil {
		return false, err
	}
	p.scopes = request.Grant.Scopes
	answer, err := browse(ctx, request.URL)
	if err != nil {
		return false, err
	}
	p.token, p.grant, err = p.client.Finish(ctx, request, answer)
	return err == nil, err
}

// browse follows the redirects of an authorization, and returns the query of the callback.
func browse(ctx context.Context, address string) (url.Values, error) {
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := browser.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	back, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || back.Host == "" {
		return nil, errors.New("the authorization server does not send the person back")
	}
	return back.Query(), nil
}

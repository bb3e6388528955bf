package oidc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/callyard/callyard/internal/kit/urls"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// answerWithin is the timeout of a request to the provider. answerBytes limits its response.
	answerWithin = 10 * time.Second
	answerBytes  = 1 << 20
	// maxArrivals limits the number of flows that finish concurrently.
	maxArrivals = 32
	// retryAfter is the minimum time between attempts to reach a provider that did not respond.
	retryAfter = 2 * time.Second
)

// algorithms returns the algorithms accepted for ID tokens. None is symmetric, because a client
// secret must not be able to sign people in.
func algorithms() []string {
	return []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}
}

// Provider is an identity provider. It is safe for concurrent use.
type Provider struct {
	c        settings.OIDC
	redirect *url.URL
	client   *http.Client
	now      func() time.Time
	log      *slog.Logger
	arrivals chan struct{}

	mu     sync.Mutex
	found  *oidc.Provider
	failed time.Time // time of the last failed attempt
	reason error
}

// New returns a provider without contacting it. redirect is the redirect URI. c must be validated;
// now may be nil.
func New(c settings.OIDC, redirect *url.URL, now func() time.Time, log *slog.Logger) *Provider {
	if now == nil {
		now = time.Now
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	return &Provider{
		c: c, redirect: redirect, now: now, log: log, arrivals: make(chan struct{}, maxArrivals),
		client: &http.Client{
			Transport: bounded{transport}, Timeout: answerWithin,
			// A redirect would lead to a server other than the configured provider.
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return errors.New("the identity provider redirects requests to its endpoints")
			},
		},
	}
}

// bounded limits the size of responses.
type bounded struct{ http.RoundTripper }

// RoundTrip sends the request.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, answerBytes), resp.Body}
	}
	return resp, err
}

// CloseIdleConnections is for [http.Client.CloseIdleConnections].
func (b bounded) CloseIdleConnections() {
	if c, ok := b.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Close closes connections that are not in use.
func (p *Provider) Close() { p.client.CloseIdleConnections() }

// Name returns the name of the provider for people: its host.
func (p *Provider) Name() string {
	u, err := url.Parse(p.c.Issuer)
	if err != nil {
		return p.c.Issuer
	}
	return u.Hostname()
}

// Redirect returns the redirect URI.
func (p *Provider) Redirect() *url.URL { return p.redirect }

// Reach fetches the provider's discovery document unless it is known. The error is of
// KindUnavailable.
func (p *Provider) Reach(ctx context.Context) error {
	_, err := p.discovered(ctx)
	return err
}

func (p *Provider) discovered(ctx context.Context) (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil {
		return p.found, nil
	}
	if p.reason == nil || p.now().Sub(p.failed) >= retryAfter {
		found, err := p.discover(ctx)
		if err == nil {
			p.found, p.reason = found, nil
			return found, nil
		}
		p.failed, p.reason = p.now(), err
		p.log.Warn("the identity provider cannot be used", "issuer", p.c.Issuer, "error", err)
	}
	return nil, p.unavailable(p.reason)
}

func (p *Provider) unavailable(err error) error {
	return schema.Errorf(schema.KindUnavailable, "The sign-in at %s cannot be used at the moment; try again, and if that does not help, ask the operator to check the log. (%w)", p.Name(), err).RetryableAfter(retryAfter)
}

func (p *Provider) discover(ctx context.Context) (*oidc.Provider, error) {
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.c.Issuer)
	if err != nil {
		return nil, fmt.Errorf("reading its discovery document: %w", err)
	}
	var doc struct {
		Keys string `json:"jwks_uri"`
	}
	if err := found.Claims(&doc); err != nil {
		return nil, fmt.Errorf("reading its discovery document: %w", err)
	}
	for _, text := range []string{found.Endpoint().AuthURL, found.Endpoint().TokenURL, doc.Keys} {
		if _, ok := urls.Secure(text); !ok {
			return nil, fmt.Errorf("its discovery document names %q, which is not an https URL", text)
		}
	}
	return found, nil
}

func (p *Provider) oauth(found *oidc.Provider) (*oauth2.Config, error) {
	secret, err := p.c.Secret()
	if err != nil {
		return nil, fmt.Errorf("reading the client secret: %w", err)
	}
	scopes := []string{oidc.ScopeOpenID}
	for _, s := range p.c.Scopes {
		if s != oidc.ScopeOpenID {
			scopes = append(scopes, s)
		}
	}
	return &oauth2.Config{ClientID: p.c.ClientID, ClientSecret: secret, Endpoint: found.Endpoint(), RedirectURL: p.redirect.String(), Scopes: scopes}, nil
}

package upstream

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/upstream/oauth"
	"github.com/callyard/callyard/pkg/schema"
)

const bearer = "Bearer "

// service obtains tokens for Callyard itself with the client credentials grant.
type service struct {
	server schema.ServerID
	auth   *config.Auth
	secret *secret // the private key, if auth has one, otherwise the client secret
	http   *http.Client
	tokens tokens

	mu       sync.Mutex
	metadata *oauth.Metadata // of auth.Issuer; nil until it was read
}

func newService(server schema.ServerID, address string, a *config.Auth) *service {
	s := &service{server: server, auth: a, http: oauth.NewHTTPClient(address, a.Issuer, a.TokenURL)}
	s.tokens.scopes = a.Scopes
	s.tokens.fetch = s.fetch
	if a.PrivateKeyFile != "" {
		s.secret = newSecret(config.Secret{File: a.PrivateKeyFile})
	} else {
		s.secret = newSecret(a.ClientSecret)
	}
	return s
}

// Authorize sets the token.
func (s *service) Authorize(ctx context.Context, h http.Header) error {
	t, err := s.tokens.get(ctx)
	if err != nil {
		return s.word(ctx, err)
	}
	h["Authorization"] = []string{bearer + t.Access}
	return nil
}

// Refused obtains another token after a 401, and one with more scopes after a 403 that asks for them.
func (s *service) Refused(ctx context.Context, r launch.Refusal) (again bool, err error) {
	if r.Status == http.StatusUnauthorized {
		again, err = s.tokens.refused(ctx, strings.TrimPrefix(r.Sent.Get("Authorization"), bearer))
	} else if c := oauth.ParseChallenge(r.Header); c.Error == "insufficient_scope" {
		again, err = s.tokens.widen(ctx, c.Scopes)
	}
	if err != nil {
		return false, s.word(ctx, err)
	}
	return again, nil
}

// CloseIdleConnections closes idle connections to the authorization server.
func (s *service) CloseIdleConnections() { s.http.CloseIdleConnections() }

func (s *service) word(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	e := launch.Failed("No access token for server %q: %w. The call did not start.", s.server, err)
	e.Retryable = true
	return e
}

func (s *service) fetch(ctx context.Context, scopes []string) (*oauth.Token, error) {
	a := s.auth
	c := &oauth.Client{ID: a.ClientID, Issuer: a.Issuer, Method: a.ClientAuth, HTTP: s.http}
	if a.PrivateKeyFile != "" {
		text, err := s.secret.get(ctx, true)
		if err == nil {
			c.Key, err = oauth.ParseKey([]byte(text), a.KeyID, a.Algorithm)
		}
		if err != nil {
			return nil, err
		}
	} else {
		c.Secret = func() (string, error) { return s.secret.get(ctx, true) }
	}
	m, err := s.endpoint(ctx)
	if err != nil {
		return nil, err
	}
	reg, err := c.Register(ctx, m) // the registration is configured, so nothing is sent
	if err != nil {
		return nil, err
	}
	return c.Credentials(ctx, m.TokenEndpoint, reg, scopes, a.Resource, a.Audience)
}

// endpoint returns the metadata of the authorization server, from the configuration or from the server.
func (s *service) endpoint(ctx context.Context) (*oauth.Metadata, error) {
	if s.auth.TokenURL != "" {
		return &oauth.Metadata{Issuer: s.auth.Issuer, TokenEndpoint: s.auth.TokenURL}, nil
	}
	s.mu.Lock()
	m := s.metadata
	s.mu.Unlock()
	if m != nil {
		return m, nil
	}
	m, err := oauth.AuthorizationServer(ctx, s.http, s.auth.Issuer)
	if err == nil {
		s.mu.Lock()
		s.metadata = m
		s.mu.Unlock()
	}
	return m, err
}

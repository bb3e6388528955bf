package authserver

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/bus"
)

// Approve stores the person's consent and returns the address to redirect to.
func (s *Server) Approve(ctx context.Context, r *Request, p *Person) (string, error) {
	now := s.o.Now()
	one := &grant{
		Client: r.Client.ID, Name: r.Client.Name, Keyed: r.Client.keyed(), Redirect: r.Redirect, Person: *p, Resource: r.Resource, Scopes: r.Scopes,
		Given: now.UTC(), Until: now.Add(s.o.GrantLifetime), Challenge: r.Challenge, CodeUntil: now.Add(codeLife),
	}
	id, code, err := s.grants.create(ctx, one)
	if err != nil {
		return "", err
	}
	s.record(ctx, id, one, Event{Kind: Given, By: p, Channel: ChannelWeb})
	s.o.Log.Info("a person gave a program access", "name", p.Name, "client", r.Client.ID, "resource", r.Resource, "scopes", strings.Join(r.Scopes, " "))
	return s.answer(r, "code", code), nil
}

// fault is an error response of the token endpoint.
type fault struct{ code, reason string }

func (f *fault) Error() string { return f.code + ": " + f.reason }

// errNoGrant is the same for every fault of a code or a refresh token, so that an attacker learns
// nothing by trying.
var errNoGrant = &fault{badGrant, "the code or refresh token is not valid for this request"}

// redemption is a request to the token endpoint.
type redemption struct {
	client                                             *caller
	code, redirect, verifier, refresh, resource, scope string
}

// issued is the result of a redemption.
type issued struct {
	id      []byte
	grant   *grant
	scopes  []string
	refresh string
}

// redeem redeems a code.
func (s *Server) redeem(ctx context.Context, r *redemption) (*issued, error) {
	id, raw, ok := splitCode(r.code)
	if !ok {
		return nil, errNoGrant
	}
	ring, err := s.ring.get(ctx)
	if err != nil {
		return nil, err
	}
	one, revision, err := s.grants.get(ctx, id)
	switch {
	case errors.Is(err, bus.ErrNotFound):
		return nil, errNoGrant
	case err != nil:
		return nil, err
	case !equalConstantTime(one.Code, digest(raw)):
		return nil, errNoGrant
	case one.Used: // one of the two uses is not by the client
		return nil, s.reused(ctx, id, one, "an authorization code")
	case one.Client != r.client.id || one.Redirect != r.redirect || !s.o.Now().Before(one.CodeUntil) || !proves(one.Challenge, r.verifier):
		return nil, errNoGrant
	case r.resource != "" && r.resource != one.Resource:
		return nil, &fault{badTarget, "resource is not the one of the authorization request"}
	}
	if err := s.confirm(ctx, r.client, one); err != nil {
		return nil, err
	}
	person, ok := s.current(&one.Person)
	if !ok {
		return nil, errNoGrant
	}
	one.Person = *person
	scopes, err := s.remaining(one)
	if err != nil {
		return nil, err
	}
	token := makeRefresh(ring.secret, id, 1)
	one.Used, one.Serial, one.Refresh, one.Renewed = true, 1, digest(token), s.o.Now().UTC()
	err = s.grants.replace(ctx, id, one, revision)
	if errors.Is(err, bus.ErrConflict) {
		if _, _, err := s.grants.get(ctx, id); errors.Is(err, bus.ErrNotFound) {
			return nil, errNoGrant // it ended concurrently
		}
		return nil, s.reused(ctx, id, one, "an authorization code, at once")
	}
	if err != nil {
		return nil, err
	}
	s.record(ctx, id, one, Event{Kind: Redeemed})
	return &issued{id, one, scopes, freshPrefix + base64.RawURLEncoding.EncodeToString(token)}, nil
}

// reused ends a grant whose code or refresh token was used twice.
func (s *Server) reused(ctx context.Context, id []byte, one *grant, what string) error {
	s.o.Log.Warn("a code or a refresh token was used twice; its grant has ended", "what", what, "name", one.Person.Name, "client", one.Client)
	if err := s.end(ctx, id, one, Event{Why: ByReuse}); err != nil {
		return errors.Join(errReused, err)
	}
	return errNoGrant
}

// proves reports whether the verifier matches the challenge (RFC 7636).
func proves(challenge, verifier string) bool {
	if len(verifier) < 43 || len(verifier) > 128 {
		return false
	}
	sum := sha256.Sum256([]byte(verifier))
	return equalConstantTime([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(challenge))
}

// renew redeems a refresh token.
func (s *Server) renew(ctx context.Context, r *redemption) (*issued, error) {
	id, serial, raw, ok := splitRefresh(r.refresh)
	if !ok {
		return nil, errNoGrant
	}
	ring, err := s.ring.get(ctx)
	if err != nil {
		return nil, err
	}
	for confirmed := false; ; {
		one, revision, err := s.grants.get(ctx, id)
		if errors.Is(err, bus.ErrNotFound) {
			return nil, errNoGrant
		}
		if err != nil {
			return nil, err
		}
		last := equalConstantTime(one.Refresh, digest(raw))
		ours := last || hmac.Equal(raw, makeRefresh(ring.secret, id, serial))
		now := s.o.Now()
		if !ours || !one.Used || one.Client != r.client.id {
			return nil, errNoGrant
		}
		if !confirmed {
			if err := s.confirm(ctx, r.client, one); err != nil {
				return nil, err
			}
			confirmed = true // an assertion is accepted only once
		}
		person, ok := s.current(&one.Person)
		switch {
		case !ok:
			return nil, errors.Join(errNoGrant, s.end(ctx, id, one, Event{Why: ByRemoval}))
		case !now.Before(one.Until):
			return nil, errors.Join(errNoGrant, s.end(ctx, id, one, Event{Why: ByExpiry}))
		}
		one.Person = *person
		scopes, err := s.narrowed(one, r)
		if err != nil {
			return nil, err
		}
		switch {
		case last:
			token := makeRefresh(ring.secret, id, one.Serial+1)
			one.Serial, one.Refresh, one.Renewed = one.Serial+1, digest(token), now.UTC()
			err := s.grants.replace(ctx, id, one, revision)
			if errors.Is(err, bus.ErrConflict) {
				continue // another process renewed it concurrently: read the result
			}
			if err != nil {
				return nil, err
			}
			s.record(ctx, id, one, Event{Kind: Renewed})
		case serial+1 == one.Serial && now.Sub(one.Renewed) < grace:
		default:
			return nil, s.reused(ctx, id, one, "a refresh token")
		}
		return &issued{id, one, scopes, freshPrefix + base64.RawURLEncoding.EncodeToString(makeRefresh(ring.secret, id, one.Serial))}, nil
	}
}

// remaining returns the scopes of the grant that its person can still give. The person may have left
// the groups of administrators, or an operator may have removed a scope, since the consent.
func (s *Server) remaining(one *grant) ([]string, error) {
	list := s.grantable(strings.Join(one.Scopes, " "), &one.Person)
	if len(list) == 0 {
		return nil, &fault{badScope, "the person can give none of the scopes of the grant any more"}
	}
	return list, nil
}

// narrowed returns the scopes of the new access token: those that remain of the grant, or the subset
// that the client requests.
func (s *Server) narrowed(one *grant, r *redemption) ([]string, error) {
	if r.resource != "" && r.resource != one.Resource {
		return nil, &fault{badTarget, "resource is not the one of the grant"}
	}
	remaining, err := s.remaining(one)
	asked := strings.Fields(r.scope)
	if err != nil || len(asked) == 0 {
		return remaining, err
	}
	var list []string
	for _, name := range asked {
		if slices.Contains(remaining, name) && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	if len(list) == 0 {
		return nil, &fault{badScope, "the grant has none of the scopes; more of them require a new authorization"}
	}
	return list, nil
}

// revoke ends the grant of a refresh token of the client. It ignores other tokens.
func (s *Server) revoke(ctx context.Context, client *caller, token string) error {
	id, serial, raw, ok := splitRefresh(token)
	if !ok {
		return nil
	}
	ring, err := s.ring.get(ctx)
	if err != nil {
		return err
	}
	one, _, err := s.grants.get(ctx, id)
	switch {
	case errors.Is(err, bus.ErrNotFound):
		return nil
	case err != nil:
		return err
	case one.Client != client.id || !equalConstantTime(one.Refresh, digest(raw)) && !hmac.Equal(raw, makeRefresh(ring.secret, id, serial)):
		return nil
	}
	if err := s.confirm(ctx, client, one); err != nil {
		return err
	}
	return s.end(ctx, id, one, Event{Why: ByProgram})
}

// tokenEnds returns the expiry of an access token issued now.
func (s *Server) tokenEnds(one *grant, now time.Time) time.Time {
	if ends := now.Add(s.o.TokenLifetime); ends.Before(one.Until) {
		return ends
	}
	return one.Until
}

// current returns the current data of a person, or false if they may no longer sign in.
func (s *Server) current(p *Person) (*Person, bool) {
	if s.o.Current == nil {
		return p, true
	}
	return s.o.Current(p)
}

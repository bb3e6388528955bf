package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/callyard/callyard/pkg/schema"
)

// flowFor limits the time that a person has at the provider. skew is the maximum difference
// between the provider's clock and ours.
const (
	flowFor = 10 * time.Minute
	skew    = time.Minute
)

// Begin returns a new flow and the address of the provider to redirect the browser to. The error
// is of KindUnavailable.
func (p *Provider) Begin(ctx context.Context, fresh bool) (Flow, string, error) {
	found, err := p.discovered(ctx)
	if err != nil {
		return Flow{}, "", err
	}
	oauth, err := p.oauth(found)
	if err != nil {
		return Flow{}, "", p.unavailable(err)
	}
	f := Flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Began: p.now().UTC(), Fresh: fresh}
	options := []oauth2.AuthCodeOption{oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)}
	if fresh {
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"), oauth2.SetAuthURLParam("max_age", "0"))
	}
	return f, oauth.AuthCodeURL(f.State, options...), nil
}

// Finish verifies the parameters of the provider's redirect and returns the person. Errors are of
// KindForbidden if the person is refused, KindExpired if the flow took too long, and
// KindUnavailable.
func (p *Provider) Finish(ctx context.Context, f Flow, back url.Values) (Person, error) {
	if err := p.check(f, back); err != nil {
		return Person{}, err
	}
	select {
	case p.arrivals <- struct{}{}:
		defer func() { <-p.arrivals }()
	default:
		return Person{}, p.unavailable(errors.New("too many sign-ins are in progress; try again in a minute"))
	}
	found, err := p.discovered(ctx)
	if err != nil {
		return Person{}, err
	}
	oauth, err := p.oauth(found)
	if err != nil {
		return Person{}, p.unavailable(err)
	}
	ctx = oidc.ClientContext(ctx, p.client)
	token, err := oauth.Exchange(ctx, back.Get("code"), oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return Person{}, p.refusedCode(err)
	}
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return Person{}, p.distrust("it answered without an ID token", nil)
	}
	return p.person(ctx, found, f, raw)
}

// check validates the provider's redirect, before any request to the provider.
func (p *Provider) check(f Flow, back url.Values) error {
	for _, values := range back {
		if len(values) != 1 {
			return schema.Errorf(schema.KindForbidden, "The address to which %s sent you back is incomplete. Sign in again.", p.Name())
		}
	}
	if f.State == "" || subtle.ConstantTimeCompare([]byte(back.Get("state")), []byte(f.State)) != 1 {
		return schema.Errorf(schema.KindForbidden, "This sign-in was not started in this browser, or a later one replaced it; you are not signed in. Sign in again.")
	}
	if iss := back.Get("iss"); iss != "" && iss != p.c.Issuer {
		return schema.Errorf(schema.KindForbidden, "The sign-in was completed at a different provider than it was started at; you are not signed in.")
	}
	if since := p.now().Sub(f.Began); since > flowFor || since < -skew {
		return schema.Errorf(schema.KindExpired, "The sign-in took longer than %d minutes; you are not signed in. Sign in again.", int(flowFor.Minutes()))
	}
	if code := back.Get("error"); code != "" {
		p.log.Info("the identity provider refused a sign-in", "issuer", p.c.Issuer, "code", plain(code))
		return schema.Errorf(schema.KindForbidden, "%s did not sign you in (%s). Try again, or ask its administrator.", p.Name(), plain(code))
	}
	if back.Get("code") == "" {
		return schema.Errorf(schema.KindForbidden, "The address to which %s sent you back is incomplete. Sign in again.", p.Name())
	}
	return nil
}

// plain returns an OAuth error code, or a placeholder for anything that is not a plain code.
func plain(code string) string {
	for i := 0; i < len(code); i++ {
		if c := code[i]; (c < 'a' || c > 'z') && c != '_' {
			return "an error"
		}
	}
	return code[:min(len(code), 40)]
}

func (p *Provider) refusedCode(err error) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.Response != nil && refused.Response.StatusCode < 500 {
		// Its body may repeat the request, so only the code is logged.
		p.log.Warn("the identity provider refused a code", "issuer", p.c.Issuer, "status", refused.Response.StatusCode, "code", plain(refused.ErrorCode))
		return schema.Errorf(schema.KindForbidden, "%s did not confirm this sign-in; you are not signed in. Sign in again; if that does not help, ask the operator to check the log.", p.Name())
	}
	if errors.As(err, &refused) {
		err = errors.New("it answered with a server error")
	}
	p.log.Warn("the identity provider cannot be used", "issuer", p.c.Issuer, "error", err)
	return p.unavailable(err)
}

// distrust logs the reason for the operator, and returns the error for an ID token that is not
// valid.
func (p *Provider) distrust(why string, err error) error {
	p.log.Warn("an ID token was refused", "issuer", p.c.Issuer, "reason", why, "error", err)
	return schema.Errorf(schema.KindForbidden, "The identity data from %s cannot be trusted; you are not signed in. Ask the operator to check the log.", p.Name())
}

// idTokenClaims holds the claims of an ID token that are checked in addition to those that go-oidc
// checks.
type idTokenClaims struct {
	Party    string      `json:"azp"`
	AuthTime json.Number `json:"auth_time"`
}

// person verifies and decodes an ID token.
func (p *Provider) person(ctx context.Context, found *oidc.Provider, f Flow, raw string) (Person, error) {
	token, err := found.Verifier(&oidc.Config{ClientID: p.c.ClientID, SupportedSigningAlgs: algorithms(), Now: p.now}).Verify(ctx, raw)
	if err != nil {
		return Person{}, p.distrust("its verification failed", err)
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(f.Nonce)) != 1 {
		return Person{}, p.distrust("it was issued for another sign-in", nil)
	}
	var more idTokenClaims
	var claims map[string]json.RawMessage
	if err := errors.Join(token.Claims(&more), token.Claims(&claims)); err != nil {
		return Person{}, p.distrust("its claims cannot be read", nil)
	}
	if more.Party != "" && more.Party != p.c.ClientID || more.Party == "" && len(token.Audience) > 1 ||
		!slices.Contains(token.Audience, p.c.ClientID) {
		return Person{}, p.distrust("it was issued for another client", nil)
	}
	who, err := p.principal(token.Subject, claims)
	if err != nil {
		return Person{}, err
	}
	at, err := p.signedIn(f, more.AuthTime)
	return Person{Principal: who, SignedIn: at}, err
}

// signedIn returns the time of the last authentication at the provider, or zero if the provider
// does not report it.
func (p *Provider) signedIn(f Flow, authTime json.Number) (time.Time, error) {
	now := p.now()
	var at time.Time
	if seconds, err := authTime.Float64(); err == nil && seconds > 0 && seconds < 1e11 {
		if at = time.Unix(int64(seconds), 0).UTC(); at.After(now.Add(skew)) {
			return at, p.distrust("its sign-in time is in the future", nil)
		}
		if at.After(now) {
			at = now
		}
	}
	if !f.Fresh {
		return at, nil
	}
	if at.IsZero() {
		return at, schema.Errorf(schema.KindForbidden, "%s did not report the time of your sign-in, so this is not a fresh sign-in. Ask the operator to have it send auth_time.", p.Name())
	}
	if at.Before(f.Began.Add(-skew)) {
		return at, schema.Errorf(schema.KindForbidden, "%s did not ask you to sign in again, so this is not a fresh sign-in. Sign out there, then sign in again.", p.Name())
	}
	return at, nil
}

// Package oidc signs people in at a provider of identities: OpenID Connect, code
// flow with PKCE.
//
// It owns what counts as proof of who somebody is, and how that becomes a
// principal. It promises that a person comes in only with an ID token that the
// provider signed with an asymmetric key, for this client, for the very flow that
// the same browser began, and not past its time; that where a fresh sign-in is
// asked for, the provider says when the person gave their proof and that it was
// since; and that the name of a person begins with "oidc:", so that it is never
// that of an API key, while the owner is the bare value of the claim, so that it
// compares with the owner of a key.
//
// It refuses to keep anything of a flow, which lies with the browser, sealed by
// whoever calls; to keep or pass on access tokens; and to log tokens, codes or
// claims.
package oidc

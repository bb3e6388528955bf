// Package token checks access tokens (JWT) of trusted issuers.
//
// It accepts only asymmetric algorithms, the configured types, audiences and lifetimes, and keys of
// the issuer, whatever the header of the token names. It fetches the keys of an issuer again when
// they become old and when a token names an unknown key, at most once every 30 seconds, so that no
// client can make a front door flood an issuer. go-jose parses signatures and JSON; it rejects
// duplicate members.
//
// No error contains a part of a token. An accepted token is cached for at most a minute, and never
// after its expiry.
//
// The package does not decide what a principal may do beyond the scopes of its token.
package token

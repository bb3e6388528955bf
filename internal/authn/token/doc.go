// Package token checks access tokens (JWT) of the issuers that the operator trusts.
//
// It owns which tokens are accepted: asymmetric algorithms only, the types, audiences and
// lifetimes of the configuration, and keys of the issuer alone, whatever a header of the
// token names. It owns the keys of issuers as well: they are fetched again when they get
// old and when a token names an unknown one, at most once in 30 seconds, so that nobody can
// make a front door flood an issuer. Signatures and JSON of tokens are read by go-jose,
// which takes no member twice.
//
// It promises that no error holds a part of a token, and that a token which was accepted is
// accepted again without work for at most a minute, and never after it has expired.
//
// It refuses to decide what a principal may do beyond the scopes of its token.
package token

// Package authn turns the credential of an HTTP request into a principal.
//
// It owns the form of an API key, the table of keys that the operator
// configured (hashes only: a key itself is shown once, when it is made, and kept
// nowhere), and the limit on wrong credentials from one address.
//
// It promises that a request with a known, unexpired key is never refused for
// what others at its address did, that no error or log line holds a credential,
// and that a request with two different credentials gets none of them.
//
// It refuses to decide what a principal may do, and to trust addresses that a
// header claims.
package authn

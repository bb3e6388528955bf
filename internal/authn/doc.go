// Package authn authenticates the credential of an HTTP request and returns its principal.
//
// It defines the format of an API key, holds the table of configured keys (hashes only: a key is
// shown once, when it is created, and never stored), and limits wrong credentials per client
// address.
//
// A request with a valid key is never refused because of other clients at its address. No error or
// log line contains a credential. A request with two different credentials is refused.
//
// The package does not decide what a principal may do, and does not trust addresses in headers.
package authn

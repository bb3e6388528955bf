// Package fetch reads web pages: the built-in server "fetch".
//
// No request reaches an address that is not public, regardless of the form of the URL and of the
// addresses to which a name resolves. Each address is checked at the moment of the connection, for
// the first request and after each redirect, so that a name that changes its address in between
// gains nothing. No proxy is used, because the proxy would make the connection. The ports are 80
// and 443.
//
// An operator permits addresses that are not public with allow, a list of hosts ("wiki.internal",
// "wiki.internal:8080"), addresses and CIDR ranges ("10.1.2.0/24", "10.1.2.3:8080"). An allowed
// host name may have a private address. Link-local addresses, and those where clouds hand out
// credentials, are never reached.
//
// A page has at most 5 MiB, a call 30 seconds and five redirects. The result is text without
// scripts, styles and markup. The content of a page is untrusted and may try to instruct the model
// that reads it.
//
// The package sends no cookies, credentials or referrer, runs no scripts, and refuses content that
// is not text.
package fetch

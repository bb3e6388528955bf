// Package fetch reads pages of the web: the built-in server "fetch".
//
// It promises that no request reaches an address that is not public, whatever form the URL
// has and whatever a name resolves to: each address is judged at the moment when a
// connection to it is made, for the first request and after each redirect, so that a name
// that changes its address in between gains nothing. No proxy is used, because a proxy
// would make the connection in its place. The ports are 80 and 443.
//
// An operator opens what is not public with allow, a list of hosts ("wiki.internal",
// "wiki.internal:8080"), addresses and CIDR ranges ("10.1.2.0/24", "10.1.2.3:8080"). The
// name of a host may then have a private address. Link-local addresses, and those where
// clouds hand out credentials, are never reached.
//
// A page has at most 5 MiB, a call 30 seconds and five redirects. The result is text:
// scripts, styles and markup are left out. What a page says is the page's, and may try to
// instruct the model that reads it.
//
// It sends no cookies, no credentials and no referrer, runs no scripts and refuses content
// that is not text.
package fetch

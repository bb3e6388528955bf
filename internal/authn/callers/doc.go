// Package callers finds out who sends a request to a front door: by an API key of the
// configuration, one that was made at run time, or an access token of an issuer.
//
// It owns which of these a credential is, what it grants, and how a client is told what is
// missing: the challenges of RFC 6750 and the metadata of RFC 9728.
//
// It promises that the address for which tokens are issued comes from the configuration
// (or, without one, from the loopback address that is listened on), and from nothing in a
// request.
//
// It refuses to know what an operation requires; that is the table of package scope.
package callers

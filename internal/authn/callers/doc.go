// Package callers authenticates the caller of a request to a front door: by a configured API key,
// by a key created at run time, or by an access token of an issuer.
//
// It decides which of these a credential is and what it grants, and tells clients what is missing
// with the challenges of RFC 6750 and the metadata of RFC 9728.
//
// The address for which tokens are issued comes from the configuration, or else from the loopback
// listen address, and never from a request.
//
// The package does not know the requirements of operations; those are in package scope.
package callers

// Package usage has the operation that reports who used what.
//
// It owns who may see which rows: the scope admin shows the tenant of whoever asks, and all
// tenants to the default one; any other credential sees what its own principal did. It
// promises that a tenant that the caller may not see is answered like one without calls. It
// refuses to count; internal/calls/usage does. The names of its types are the names of
// schemas in the OpenAPI document.
package usage

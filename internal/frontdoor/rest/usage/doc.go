// Package usage implements the operation that reports usage.
//
// It owns the rules for which rows a caller may see: the scope admin shows the caller's tenant, and
// all tenants to the default tenant. Any other credential shows only its own principal. A tenant
// that the caller may not see is answered like a tenant without calls. It does not count;
// internal/calls/usage does. The names of its types are the names of schemas in the OpenAPI
// document.
package usage

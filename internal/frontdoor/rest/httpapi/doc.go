// Package httpapi is the HTTP layer and the OpenAPI document that the resources of the REST API
// share.
//
// It owns the [Exchange], which is one request and its answer; the reading and limiting of bodies
// and parameters; the problem documents for errors; and the [Document], in which an operation is
// described and registered in one step. It uses Huma, and knows nothing of calls.
//
// It guarantees that no body takes more memory or time than its limits; that a query contains only
// what the document describes; that no problem repeats the caller's input; and that answers given
// as bytes are sent unchanged.
//
// It does not authenticate callers and imports no resource: package rest does both.
package httpapi

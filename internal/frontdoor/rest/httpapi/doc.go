// Package httpapi is what the resources of the REST API share: HTTP, and the OpenAPI document.
//
// It owns the [Exchange], which is one request and its answer; how bodies and parameters are
// read and bounded; the problem documents that errors become; and the [Document], in which an
// operation is described and registered at once. It knows Huma, and nothing of calls.
//
// It promises that no body takes more memory or time than its bounds; that a query holds what
// the document says and nothing else; that no problem repeats what the caller sent; and that
// what is answered as bytes leaves as those bytes.
//
// It refuses to decide who may ask, and to import a resource: that is for package rest.
package httpapi

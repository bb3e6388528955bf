// Package rest is the REST API of the front door.
//
// It owns the paths, the shapes of requests and answers, the OpenAPI document,
// the page at /docs, and the one table that turns a kind of error into an HTTP
// status. It alone knows Huma.
//
// It promises that the arguments of a call leave as the bytes that came in and
// that a result arrives as the bytes the tool sent; that every refusal, those of
// the router and of a panic included, is an RFC 9457 problem document with a
// sentence that names the mend; that no problem document repeats an argument or
// a credential; and that what the OpenAPI document says is what is served.
//
// It refuses to judge calls (that is admission's), to listen (that is
// frontdoor's), and to answer to web pages of other origins.
//
// Lists and reports are Huma operations. What carries a body, or answers with
// bytes that a tool server made, is served beside Huma, so that nothing is
// decoded on the way, and documented in the same document.
package rest

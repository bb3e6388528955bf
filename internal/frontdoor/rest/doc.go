// Package rest is the REST API of the front door.
//
// It puts the resources, each of which is a package of its own below, on one mux, and stands
// before all of them: it gives a request its id, refuses web pages of other origins, and finds
// out who asks. It owns the pages for people, /docs among them, and serves the OpenAPI document.
//
// It promises that the arguments of a call leave as the bytes that came in and
// that a result arrives as the bytes the tool sent; that every refusal, those of
// the router and of a panic included, is an RFC 9457 problem document with a
// sentence that names the fix; that no problem document repeats an argument or
// a credential; and that what the OpenAPI document says is what is served.
//
// It refuses to judge calls (that is admission's), to listen (that is
// frontdoor's), and to answer to web pages of other origins.
//
// Package httpapi is the HTTP that the resources share, and the document; openapi describes
// operations; submit makes the calls of all resources. A resource imports these three and the
// domain, and no other resource.
// Reports are Huma operations. What carries a body, or answers with bytes that a tool server
// made, is served without Huma, so that nothing is decoded on the way, and documented in the
// same document.
package rest

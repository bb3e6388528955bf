// Package rest is the REST API of the front door.
//
// It registers the resources, each of which has its own package below, on one mux. Before each
// request it assigns a request ID, refuses web pages of other origins, and authenticates the
// caller. It owns the pages for people, including /docs, and serves the OpenAPI document.
//
// It guarantees that
//   - the arguments of a call are forwarded, and the result of a tool is returned, byte for byte;
//   - every refusal, including those of the router and of a panic, is an RFC 9457 problem document
//     with a sentence that names the fix;
//   - no problem document repeats an argument or a credential;
//   - the OpenAPI document describes exactly what is served.
//
// It does not judge calls (admission does) and does not open listeners (frontdoor does). It
// rejects requests from web pages of other origins.
//
// Package httpapi is the HTTP layer that the resources share, and the document; openapi describes
// operations; submit creates the calls of all resources. A resource imports these three and the
// domain, and no other resource.
// Reports are Huma operations. Operations that accept a body, or return bytes of a tool server,
// are served without Huma, so that nothing is decoded in between, and documented in the same
// document.
package rest

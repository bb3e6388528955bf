// Package openapi makes tools out of the operations of a REST service that an
// OpenAPI document of version 3.0 or 3.1 describes.
//
// It promises that a request goes to the configured address alone, whatever the
// document and the arguments say: other servers in the document, references to
// other documents, redirects to elsewhere and dots in path parameters lead
// nowhere. Credentials come from the configuration, never from the caller, and a
// caller cannot set a header, parameter or cookie that carries one. A JSON body is
// sent as the bytes that came. Nothing is sent twice, and redirects of requests
// that may change something are answers, not followed.
//
// What cannot be offered is left out with a note; a document that cannot be read,
// and a credential for a scheme that it does not have, fail the server.
//
// It refuses Swagger 2.0, callbacks, webhooks, and to guess what a document leaves
// open: where no rule says how a value is written, the call is refused.
//
// It is one package because the tool that is offered and the request that is sent are made
// of the same reading of an operation: its parameters, styles and schemas.
package openapi

const (
	maxDocument   = 16 << 20
	maxOperations = 5000
	maxJudged     = 100      // schemas up to which a document is looked at for what is wrong: the time grows with their square
	maxTools      = 32 << 20 // bytes of all definitions
)

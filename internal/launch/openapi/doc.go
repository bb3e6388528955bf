// Package openapi turns the operations of a REST service, described by an OpenAPI document of
// version 3.0 or 3.1, into tools.
//
// A request goes only to the configured address, whatever the document and the arguments contain:
// other servers in the document, references to other documents, redirects to other origins and dots
// in path parameters have no effect. Credentials come from the configuration, never from the
// caller, and a caller cannot set a header, parameter or cookie that carries one. A JSON body is
// sent byte for byte. Nothing is sent twice. A redirect of a request that may change something is
// returned as the response, not followed.
//
// An operation that cannot become a tool is omitted with a note. A document that cannot be read,
// and a credential for a scheme that it does not have, make the server fail.
//
// The package does not support Swagger 2.0, callbacks and webhooks, and does not guess: if no rule
// defines the encoding of a value, the call is refused.
//
// It is one package because the offered tool and the sent request come from the same reading of an
// operation: its parameters, styles and schemas.
package openapi

const (
	maxDocument   = 16 << 20
	maxOperations = 5000
	maxJudged     = 100      // maximum number of schemas for validating the document: the time grows with the square
	maxTools      = 32 << 20 // maximum size of all definitions, in bytes
	maxNotes      = 5        // maximum number of notes in an error
)

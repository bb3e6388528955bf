// Package openapi has the words in which operations are described in the OpenAPI document:
// schemas, parameters, bodies and responses.
//
// It builds values of Huma and nothing else. It promises that what several operations have in
// common, such as the responses of a refusal, is described in one way.
//
// It refuses to register operations: the document is of package httpapi.
package openapi

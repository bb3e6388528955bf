// Package openapi builds the parts of operations in the OpenAPI document: schemas, parameters,
// bodies and responses.
//
// It only builds Huma values. Parts that several operations share, such as the responses of a
// refusal, have one description.
//
// It does not register operations: the document belongs to package httpapi.
package openapi

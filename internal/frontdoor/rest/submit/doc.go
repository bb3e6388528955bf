// Package submit creates the calls of all resources of the REST API, and answers with their
// outcomes.
//
// It owns the [Runner]; the ways to request a stored call, events, or an uncached result; and the
// schemas of the answers to a call, in the document and in JSON.
//
// It guarantees that the result of a tool is in an answer byte for byte, that a held call is never
// answered as one that has run, and that a caller who disconnects from a stream cancels its call.
//
// It does not judge or store calls: internal/calls does.
package submit

// Package submit makes the calls of all resources of the REST API, and answers with what came
// of them.
//
// It owns the [Runner]; how a caller asks for a stored call, for events, or for a result that
// is not a cached one; and the shapes of the answers to a call, in the document and in JSON.
//
// It promises that the result of a tool stands in an answer byte for byte, that a call that is
// held is never answered as one that has run, and that a caller who leaves a stream cancels
// its call.
//
// It refuses to judge calls and to store them: that is for internal/calls.
package submit

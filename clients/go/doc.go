// Package callyard is the Go client of Callyard's REST API.
//
// client.gen.go is generated from the OpenAPI document: a method for each
// operation, in two forms. Those of [ClientWithResponses] read the whole answer
// into typed members; those of [Client], which [ClientWithResponses] also has,
// give the answer as it comes, for streams.
//
// The other files are written by hand and stay small. They hold what a generator
// does not make: [New] adds the key and sends again what is safe to send again,
// [ClientWithResponses.Call] calls a tool, [ClientWithResponses.Wait] waits for a stored or
// held call, [Check] turns a refusal into an error, and [Lines] and [Events] read answers
// that have no end. The package batchfile, below this one, runs a file of calls as a batch.
//
// The package keeps no state and starts no goroutine; a client is safe for
// concurrent use as far as its HTTP client is.
package callyard

// Package callyard is the Go client of Callyard's REST API.
//
// client.gen.go is generated from the OpenAPI document. It has two methods for each
// operation. The methods of [ClientWithResponses] read the whole response and decode it
// into typed fields. The methods of [Client], which [ClientWithResponses] embeds, return
// the raw response, for streams.
//
// The other files are handwritten and small. They add what the generator does not
// provide. [New] sends the API key and retries requests when that is safe.
// [ClientWithResponses.Call] calls a tool, and [ClientWithResponses.Wait] waits for a stored
// or held call. [Check] turns an error response into an error. [Lines] and [Events] read
// streamed responses. The subpackage batchfile runs a file of calls as a batch.
//
// The package keeps no state and starts no goroutine. A client is safe for
// concurrent use if its HTTP client is.
package callyard

// Package batches implements the operations on batches: create a batch, add calls, follow it, read
// its results, cancel it, and confirm its held calls.
//
// It owns the parsing of the calls of a batch, from a document or from a stream of lines, and the
// writing of results, one per line. It guarantees that a body of lines is read only as fast as its
// calls are stored, so that memory does not limit the size of a batch; that an invalid line is
// refused alone; and that each result includes the cursor from which a reader continues.
//
// It does not run calls: internal/batch does. The names of its types are the names of schemas in
// the OpenAPI document.
package batches

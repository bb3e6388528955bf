// Package batches has the operations on batches: create one, send it calls, follow it, read its
// results, cancel it, and confirm those of its calls that are held.
//
// It owns how the calls of a batch are read, from a document or from lines without an end,
// and how results are written, one on each line. It promises that a body of lines is read
// no faster than its calls are stored, so that memory does not bound a batch; that a line
// which is not a call is refused by itself; and that each result carries the cursor from
// which a reader continues.
//
// It refuses to run calls: that is for internal/batch. The names of its types are the names of
// schemas in the OpenAPI document.
package batches

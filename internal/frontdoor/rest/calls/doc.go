// Package calls implements the operations on single calls: call a tool, confirm a held call, read
// the state of a call, and list, cancel and settle calls.
//
// It owns their paths, their descriptions in the OpenAPI document, and the parsing of their bodies.
// It guarantees that the arguments of a call are forwarded byte for byte.
//
// It does not know where a call is stored, and creates calls only through package submit.
package calls

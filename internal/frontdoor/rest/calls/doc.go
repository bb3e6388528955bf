// Package calls has the operations on single calls: call a tool, confirm a call that is held,
// ask for the state of a call, list, cancel and settle calls.
//
// It owns their paths, their descriptions in the OpenAPI document, and the bodies that they
// read. It promises that the arguments of a call leave as the bytes that came in.
//
// It refuses to know where a call is stored, and to make calls in another way than through
// package submit.
package calls

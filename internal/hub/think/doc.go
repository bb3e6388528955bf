// Package think gives a model a place to think: the built-in server "think".
//
// The tool records nothing. It is useful because the thought becomes part of the conversation, and
// because the model learns that the call arrived.
package think

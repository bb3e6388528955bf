// Package think gives a model a place to think: the built-in server "think".
//
// The tool records nothing. Its use is that the thought stands in the conversation, and
// that the model knows that the call arrived.
package think

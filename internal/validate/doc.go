// Package validate checks the arguments of a call: that they are strict JSON within limits, and
// that they match the input schema of the tool.
//
// It defines well-formed arguments ([Arguments]), the compiled form of a tool's input schema
// ([Schema]) and a limited cache of compiled schemas ([Cache]).
//
// Every JSON parser reads the input that [Arguments] accepts in the same way: one object, no
// duplicate keys, valid UTF-8, no lone surrogates. No error and no fault contains a value of the
// arguments. A hostile schema affects only its own tool, because time and memory of a check are
// limited.
//
// The package does not change the arguments, fills in no defaults, and fetches nothing that a
// schema refers to. It is never stricter than the schema: a pattern that Go cannot run is listed
// ([Schema.Unenforced]) and left to the MCP server.
package validate

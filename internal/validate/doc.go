// Package validate checks the arguments of a call: that they are strict JSON
// within limits, and that they fit the input schema of the tool.
//
// It owns the one definition of "well-formed arguments" ([Arguments]), the
// compiled form of a tool's input schema ([Schema]) and a bounded store of those
// ([Cache]).
//
// It promises that what [Arguments] accepts means the same to every JSON reader:
// one object, no key twice, no broken UTF-8, no lone surrogate. It promises that
// no error and no fault repeats a value of the arguments, and that a hostile
// schema costs its own tool only: time and memory of a check are bounded.
//
// It refuses to change a byte of the arguments, to fill in defaults, to fetch
// anything a schema refers to, and to judge more strictly than the schema does:
// a pattern that Go cannot run is listed ([Schema.Unenforced]) and left to the
// MCP server.
package validate

// Package tools has the operations on the tools of all servers: list them, as MCP has them or
// as a model provider takes them, switch one off, and run the tool calls that a model made.
//
// It owns the pages of the list, and which tool a model means by a name. It promises that a
// tool that comes or goes shifts no page, and that a tool call of a model is checked, held and
// run like any other.
//
// It refuses to know the formats of providers: that is for internal/format. The names of its
// types are the names of schemas in the OpenAPI document.
package tools

// Package tools implements the operations on the tools of all servers: list them in the format of
// MCP or of a model provider, disable one, and run the tool calls of a model.
//
// It owns the pages of the list, and the resolution of the names that a model uses. Adding or
// removing a tool never shifts a page, and a tool call of a model is checked, held and run like any
// other.
//
// It does not know the formats of providers: internal/format does. The names of its types are the
// names of schemas in the OpenAPI document.
package tools

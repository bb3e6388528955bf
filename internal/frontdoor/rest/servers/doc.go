// Package servers implements the operations on the fleet: servers, their definitions, resources and
// prompts, workers, and the event streams about all of these.
//
// It owns the views of servers and workers. The definitions of an MCP server are listed byte for
// byte, and a change of the fleet is encoded once, however many streams it wakes.
//
// It does not start servers, and adds one only if the operator has enabled that. The names of its
// types are the names of schemas in the OpenAPI document.
package servers

// Package servers has the operations on the fleet: servers, their definitions, resources and
// prompts, workers, and the events that follow all of it.
//
// It owns how servers and workers are shown. It promises that what an MCP server offers is
// listed byte for byte as the server gave it, and that one change of the fleet costs one
// encoding, however many streams it wakes.
//
// It refuses to start servers, and to add one where the operator has not switched that on. The
// names of its types are the names of schemas in the OpenAPI document.
package servers

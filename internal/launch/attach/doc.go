// Package attach is the worker's end of the WebSocket connections over which programs of
// any language serve MCP. The program dials ([Accept]), or listens and is dialed ([Dial]);
// the worker is the MCP client.
//
// It promises that a connection carries text frames with one JSON-RPC message each, none
// longer than the limit, and that a program which sends nothing for two ping intervals,
// not even the answer to a ping, is found to be gone.
//
// It refuses to read JSON-RPC: package session does that. It knows no credential either;
// package worker checks the key before the upgrade.
package attach

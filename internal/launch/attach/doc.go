// Package attach is the worker's end of WebSocket connections over which programs in any language
// serve MCP. A program dials ([Accept]), or listens and is dialed ([Dial]). The worker is the MCP
// client.
//
// A connection carries text frames with one JSON-RPC message each, limited in size. A program that
// sends nothing for two ping intervals, not even a pong, is detected as disconnected.
//
// The package does not parse JSON-RPC; package session does. It does not check credentials either;
// package worker checks the key before the upgrade.
package attach

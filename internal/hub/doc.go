// Package hub holds the built-in servers: curated tools that run in the worker itself and
// need no other program. Their tools have the names of toolregistry-hub's.
//
// [List] describes the built-in servers and [Open] makes one from its [Settings]. Each
// server is a package below this one.
//
// It promises that every tool ends within limits of its own, whatever its arguments are,
// and that the servers that [Entry] calls safe reach neither files nor the network.
//
// It refuses a setting that a built-in does not have, and to open a server that lacks one
// that it needs. Time limits of a call, places and approvals are the business of the worker
// and of the policy.
package hub

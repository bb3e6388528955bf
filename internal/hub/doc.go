// Package hub holds the built-in servers: curated tools that run in the worker itself and need no
// other program. Their tools have the same names as toolregistry-hub's.
//
// [List] describes the built-in servers and [Open] creates one from its [Settings]. Each server is
// a package below this one.
//
// Every tool ends within its own limits, regardless of its arguments. Servers marked as safe in
// their [Entry] reach no files and no network.
//
// The package refuses settings that a built-in does not have, and does not open a server that lacks
// a required one. Time limits of a call, placement and approvals are the responsibility of the
// worker and of the policy.
package hub

// Package catalog knows which servers and tools exist: workers announce them, the front door reads
// them.
//
// It owns the live view of the fleet, the definitions of every server as the bytes that the server
// sent (kept by digest, so that workers with the same server share them), the search index of
// tools, the switches that turn tools off, the accepted definitions of pinned servers, and sets of
// tools.
//
// It is one package because whether a tool may be listed and called depends on all of
// these at once, and is decided under one lock and read as one value.
//
// A silent worker disappears within seconds. A failed server is shown as failed, never as a server
// without tools. A switch survives a restart. A server whose definitions were never read has
// unknown tools, not none.
package catalog

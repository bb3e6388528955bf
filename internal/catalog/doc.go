// Package catalog says which servers and tools exist: workers announce, the
// front door reads.
//
// It owns the live view of the fleet, the definitions of every server as the
// bytes that the server sent (kept by digest, so that workers with the same
// server share them), the index by which tools are found, the switches that turn
// tools off, the accepted definitions of pinned servers, and sets of tools.
//
// It is one package because whether a tool may be listed and called depends on all of
// these at once, and is decided under one lock and read as one value.
//
// It promises that a worker that fell silent is gone within seconds, that a
// server which failed is shown as failed and never as one without tools, and
// that a switch survives a restart. It refuses to guess: a server whose
// definitions were never read has unknown tools, not none.
package catalog

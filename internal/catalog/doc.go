// Package catalog says which servers and tools exist: workers announce, the
// front door reads.
//
// It owns the live view of the fleet, the definitions of every server as the
// bytes that the server sent (kept by digest, so that workers with the same
// server share them), the index by which tools are found, and the switches that
// turn a tool off.
//
// It promises that a worker that fell silent is gone within seconds, that a
// server which failed is shown as failed and never as one without tools, and
// that a switch survives a restart. It refuses to guess: a server whose
// definitions were never read has unknown tools, not none.
package catalog

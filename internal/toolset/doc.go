// Package toolset composes sets of tools: named, ordered selections of the tools of all servers,
// with names that the set defines.
//
// A [Set] selects tools by server, name, tags, hints and risk level, and may include other sets: it
// can merge or flatten several sets, or narrow one. [All.Compose] is a pure function of the sets
// and the tools, so every front door with the same view of the fleet gets the same names.
//
// The package does not guess: if several tools of a set would have the same name, one of them gets
// it only if the set says so.
package toolset

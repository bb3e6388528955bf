// Package toolset composes sets of tools: named, ordered selections over the tools of all
// servers, under names of their own.
//
// A [Set] selects tools by server, name, tags, hints and risk level, and may include other
// sets: a set of sets merges or flattens them, a set that includes one and narrows it is a
// part of it. [All.Compose] is a pure function of the sets and the tools, so every front
// door with the same view of the fleet gets the same names.
//
// It refuses to guess: a name that several tools of a set would have is given to one of
// them only where the set says so.
package toolset

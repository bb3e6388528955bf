// Package search finds tools by words of a model or a person.
//
// It contains the index and the ranking: how texts become words, the weight of a word in each part
// of a definition, and when no tool matches. docs/reference/search.md describes the ranking.
//
// The index of one server never changes after its creation, so a change of one server costs only
// the work for that server. Texts of servers are read up to a limit, and longer texts weigh less
// per word. A search finds no tool that its caller has hidden. The same query over the same tools
// gives the same tools in the same order.
//
// The package does not know the caller: the catalog decides which tools may be found.
package search

// Package search finds tools by what a model or a person says in words.
//
// It owns the index and the ranking: how texts become words, what a word counts in which
// part of a definition, and when nothing fits. docs/reference/search.md states the ranking.
//
// It promises that an index of one server never changes once it is made, so that a change of
// one server costs the work of that server alone; that texts of servers are read only up to a
// bound, and count less the more of them there is; that a search finds nothing that its caller
// has hidden; and that the same query over the same tools finds the same tools in the same order.
//
// It refuses to know who asks: the catalog decides which tools may be found.
package search

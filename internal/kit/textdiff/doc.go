// Package textdiff compares two texts line by line, for pages that show what changed.
//
// It promises that no line of either text is lost, that its work is linear in the
// size of large texts, and that no character is cut in two. It knows nothing of HTML.
package textdiff

// Package textdiff computes line diffs of two texts, for pages that show changes.
//
// No line of either text is lost, the work is linear in the size of large texts, and no character
// is split. It does not produce HTML.
package textdiff

// Package htmltext turns HTML into text for a model: it leaves out scripts, styles and
// markup, and keeps lines, lists, headings and, on request, the targets of links.
//
// It reads tokens and builds no tree, so that its time and memory grow with the length of
// the document alone, whatever is nested in it. It promises valid UTF-8 of a bounded
// length.
//
// It does not lay the page out: text that a style hides is in the result.
package htmltext

// Package htmltext converts HTML to text for a model. It drops scripts, styles and markup, and
// keeps lines, lists, headings and, on request, the targets of links.
//
// It reads tokens and builds no tree, so that its time and memory grow with the length of the
// document only, regardless of nesting. The result is valid UTF-8 of limited length.
//
// It does not lay out the page: text that a style hides is in the result.
package htmltext

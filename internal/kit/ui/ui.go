// Package ui is the visual system of Callyard's web pages: one stylesheet with the
// tokens (spacing, type, colors for light and dark) and the components (header, card,
// badge, button, notice, field, table, code) that pages are built from.
//
// It owns the appearance of those. Each pair of text and background color has the contrast that
// WCAG 2.2 AA requires. It also has the frame with the navigation. It knows no pages: the layout
// of a page belongs to the package that serves it.
package ui

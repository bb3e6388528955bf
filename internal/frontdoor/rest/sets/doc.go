// Package sets has the operations on sets of tools: list them, show what one has now, make,
// change and remove them.
//
// It owns conditional requests on sets: an entity tag names a revision, and a change that
// names another is refused, so that of two people who edit a set none loses an edit. It
// refuses to know how a set is composed; the catalog does. The names of its types are the
// names of schemas in the OpenAPI document.
package sets

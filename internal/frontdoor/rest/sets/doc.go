// Package sets implements the operations on sets of tools: list them, show the current tools of a
// set, and create, change and remove sets.
//
// It owns conditional requests on sets: an entity tag names a revision, and a change that names
// another revision is refused, so that concurrent edits of a set are not lost. It does not know how
// a set is composed; the catalog does. The names of its types are the names of schemas in the
// OpenAPI document.
package sets

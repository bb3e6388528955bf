package httpapi

import "strconv"

// TagOf returns the entity tag of a revision; see RFC 9110, section 8.8.3.
func TagOf(revision uint64) string { return strconv.Quote(strconv.FormatUint(revision, 10)) }

// RevisionOf returns the revision of an entity tag. ok is false if the tag does not belong to any
// revision.
func RevisionOf(tag string) (revision uint64, ok bool) {
	text, bad := strconv.Unquote(tag)
	revision, err := strconv.ParseUint(text, 10, 64)
	return revision, bad == nil && err == nil && revision != 0
}

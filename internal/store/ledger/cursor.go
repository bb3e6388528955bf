package ledger

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/callyard/callyard/pkg/schema"
)

// Cursor is the place of an approval in lists, which are in the order of creation. IDs do not have
// that order: those of durable calls and of calls of batches are digests. The zero cursor is before
// the first approval of a list.
type Cursor struct {
	created int64 // in nanoseconds since 1970
	id      schema.ApprovalID
}

// CursorOf returns the place of an approval.
func CursorOf(a *Approval) Cursor { return Cursor{a.Created.UnixNano(), a.ID} }

// ParseCursor parses the text of a cursor. ok is false if the text is not that of a cursor.
func ParseCursor(text string) (c Cursor, ok bool) {
	created, id, ok := strings.Cut(text, "_")
	at, err := strconv.ParseInt(created, 10, 64)
	return Cursor{at, schema.ApprovalID(id)}, ok && err == nil
}

// String returns the text of a cursor: letters, digits and "_".
func (c Cursor) String() string { return strconv.FormatInt(c.created, 10) + "_" + string(c.id) }

// IsZero reports whether it is the zero cursor.
func (c Cursor) IsZero() bool { return c == Cursor{} }

// Compare returns -1 if the approval of c is older than that of o, and 1 if it is newer.
func (c Cursor) Compare(o Cursor) int {
	return cmp.Or(cmp.Compare(c.created, o.created), cmp.Compare(c.id, o.id))
}

package journal

import (
	"strconv"
	"strings"

	"github.com/callyard/callyard/pkg/schema"
)

// Cursor is a place in a log of results: everything before the message Sequence was
// seen, and the first Position records of it. The zero value is the beginning.
type Cursor struct {
	Sequence uint64
	Position uint32
}

// After is the cursor of all that comes after a record that [Store.Results] or
// [Store.Follow] gave.
func After(r *ResultRecord) Cursor { return Cursor{r.Sequence, r.Position + 1} }

// ParseCursor reads what [Cursor.String] wrote; "" is the beginning.
func ParseCursor(text string) (Cursor, error) {
	if text == "" {
		return Cursor{}, nil
	}
	s, p, ok := strings.Cut(text, "-")
	sequence, err := strconv.ParseUint(s, 36, 64)
	position, err2 := strconv.ParseUint(p, 36, 32)
	if !ok || err != nil || err2 != nil {
		return Cursor{}, schema.Errorf(schema.KindInvalidRequest, "The cursor is invalid; use the cursor of an answer, or none to start at the beginning.")
	}
	return Cursor{sequence, uint32(position)}, nil
}

// String returns the cursor as callers carry it; "" is the beginning.
func (c Cursor) String() string {
	if c == (Cursor{}) {
		return ""
	}
	return strconv.FormatUint(c.Sequence, 36) + "-" + strconv.FormatUint(uint64(c.Position), 36)
}

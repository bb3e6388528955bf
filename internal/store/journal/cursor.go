package journal

import (
	"strconv"
	"strings"

	"github.com/callyard/callyard/pkg/schema"
)

// Cursor is a position in a log of results: the reader has seen all messages before Sequence, and the
// first Position records of that message. The zero value is the start.
type Cursor struct {
	Sequence uint64
	Position uint32
}

// After returns the cursor after a record that [Store.Results] or [Store.Follow] returned.
func After(r *ResultRecord) Cursor { return Cursor{r.Sequence, r.Position + 1} }

// ParseCursor parses the output of [Cursor.String]; "" is the start.
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

// String returns the cursor in the format for callers; "" is the start.
func (c Cursor) String() string {
	if c == (Cursor{}) {
		return ""
	}
	return strconv.FormatUint(c.Sequence, 36) + "-" + strconv.FormatUint(uint64(c.Position), 36)
}

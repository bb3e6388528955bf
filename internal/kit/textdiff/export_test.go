package textdiff

import (
	"bytes"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Sides reconstructs both texts from a diff.
func Sides(before, after []byte) (a, b []byte, inOrder bool) {
	inOrder = true
	valid := utf8.Valid(before) && utf8.Valid(after)
	var x, y [][]byte
	for _, l := range fullDiff(before, after) {
		text := slices.Concat(l.Head, l.Body, l.Tail)
		inOrder = inOrder && (!valid || utf8.Valid(l.Head) && utf8.Valid(l.Body) && utf8.Valid(l.Tail))
		if l.Op != added {
			x = append(x, text)
		}
		if l.Op != removed {
			y = append(y, text)
		}
	}
	return bytes.Join(x, []byte("\n")), bytes.Join(y, []byte("\n")), inOrder
}

// Compared returns a diff as signs and texts.
func Compared(before, after []byte) (out []string) {
	for _, l := range JSON(before, after) {
		switch {
		case l.Op == skipped:
			out = append(out, fmt.Sprintf("(%d)", l.Skipped))
		case len(l.Head)+len(l.Tail) > 0:
			out = append(out, fmt.Sprintf("%s%s[%s]%s", l.Sign(), l.Head, l.Body, l.Tail))
		default:
			out = append(out, l.Sign()+string(l.Body))
		}
	}
	return out
}

package ui

import (
	"bytes"

	"github.com/callyard/callyard/internal/kit/truncate"
)

// Text longer than this is folded, because the decision must remain on the first screen.
const (
	previewLines = 12
	previewBytes = 600
)

// longText is text on a page. If it is long, the page shows its beginning, and the whole text
// after a click.
type longText struct {
	Label   string
	Text    []byte
	Preview []byte // the beginning; nil if the text is shown whole
	Extent  string // size of the whole text, such as "240 lines"
}

func fold(label string, text []byte) longText {
	f := longText{Label: label, Text: text}
	lines := bytes.Count(text, []byte("\n")) + 1
	if lines <= previewLines && len(text) <= previewBytes {
		return f
	}
	end := len(truncate.Head(text, previewBytes))
	for i, n := 0, 0; i < end; i++ {
		if text[i] == '\n' {
			if n++; n == previewLines {
				end = i
			}
		}
	}
	f.Preview = text[:end]
	if f.Extent = Number(lines) + " lines"; lines <= previewLines {
		f.Extent = Number(len(text)) + " bytes" // a few long lines
	}
	return f
}

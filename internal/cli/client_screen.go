package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/term"

	"github.com/callyard/callyard/internal/kit/visible"
)

// screen is the output of a command: a terminal, or a pipe or file, which gets neither colours nor
// shortened cells.
type screen struct {
	w        io.Writer
	format   format // of data; "" means [formatTable]
	terminal bool
	colour   bool
	width    int // in columns; 0 means no limit
	height   int // in rows; 0 means no limit
}

// screenOf returns the screen for a writer.
func screenOf(w io.Writer) screen {
	s := screen{w: w}
	if f, ok := w.(interface{ Fd() uintptr }); ok && term.IsTerminal(f.Fd()) {
		s.terminal = true
		if width, height, err := term.GetSize(f.Fd()); err == nil {
			s.width, s.height = width, height
		}
	}
	s.colour = wantsColour(s.terminal, os.Getenv)
	return s
}

// wantsColour follows the conventions of no-color.org and bixense.com/clicolors. NO_COLOR
// takes precedence over CLICOLOR_FORCE.
func wantsColour(terminal bool, getenv func(string) string) bool {
	force := getenv("CLICOLOR_FORCE")
	switch {
	case getenv("NO_COLOR") != "":
		return false
	case force != "" && force != "0":
		return true
	}
	return terminal && getenv("TERM") != "dumb" && getenv("CLICOLOR") != "0"
}

// text writes the text. A write error is an error of the command.
func (s screen) text(text string) error {
	if _, err := io.WriteString(s.w, text); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

// raw writes a document unchanged, with a line end if it has none. On a terminal, characters of JSON that
// could control it are written as JSON escapes, which have the same value.
func (s screen) raw(body []byte) error {
	if s.terminal {
		body = escapedJSON(body)
	}
	if _, err := s.w.Write(body); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	if bytes.HasSuffix(body, []byte("\n")) {
		return nil
	}
	return s.text("\n")
}

// sheet writes the properties of one object, with a name and a value in each row. It omits rows
// without a value, and shortens no value.
func (s screen) sheet(rows ...[]cell) error {
	rows = slices.DeleteFunc(rows, func(row []cell) bool { return row[1].text == "" })
	if len(rows) == 0 {
		return nil
	}
	return s.columns(rows, naturalWidths(rows), []int{0, 1})
}

// section writes a headline and a multi-line text.
func (s screen) section(head, text string) error {
	return s.text("\n" + s.paint(bold, head) + "\n" + text + "\n")
}

// colour is an SGR code; "" means no colour.
type colour string

const (
	plain  colour = ""
	bold   colour = "1"
	faint  colour = "2"
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
)

func (s screen) paint(c colour, text string) string {
	if !s.colour || c == plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// escapedJSON returns JSON in which the characters that could control a terminal are escaped. In JSON, the
// control characters of ASCII are escaped already, except DEL, and a return is a space.
func escapedJSON(body []byte) []byte {
	if bytes.IndexFunc(body, visible.ControlsTerminal) < 0 && utf8.Valid(body) {
		return body
	}
	out := make([]byte, 0, len(body)+64)
	for _, r := range string(body) {
		switch {
		case r == '\r':
			out = append(out, ' ')
		case visible.ControlsTerminal(r):
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

// oneLine returns the text on one line, with characters that could control a terminal escaped.
func oneLine(text string) string {
	return visible.Terminal(strings.Join(strings.Fields(text), " "))
}

// size formats a number of bytes.
func size(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 999_500: // larger values would be rounded to 1000 kB
		return fmt.Sprintf("%d kB", (n+500)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// pretty indents JSON without changing its values. It returns other text unchanged.
func pretty(raw []byte) string {
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(raw), "", "  "); err != nil {
		return string(raw)
	}
	return b.String()
}

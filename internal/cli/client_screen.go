package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/term"
)

// screen is where a command writes: a terminal, or a pipe or file, which gets
// neither colours nor cut lines.
type screen struct {
	w        io.Writer
	terminal bool
	colour   bool
	width    int // in columns; 0 is without end
}

// screenOf looks what the writer is, and whether NO_COLOR or TERM=dumb asks for
// plain text.
func screenOf(w io.Writer) screen {
	s := screen{w: w}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(f.Fd()) {
		return s
	}
	s.terminal = true
	s.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if width, _, err := term.GetSize(f.Fd()); err == nil {
		s.width = width
	}
	return s
}

// text writes the text. Output that cannot be written is an error of the command.
func (s screen) text(text string) error {
	if _, err := io.WriteString(s.w, text); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

// raw writes the bytes as they are, with a line end if they have none.
func (s screen) raw(body []byte) error {
	if _, err := s.w.Write(body); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	if bytes.HasSuffix(body, []byte("\n")) {
		return nil
	}
	return s.text("\n")
}

// json writes the value as one line of JSON.
func (s screen) json(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding the output: %w", err)
	}
	return s.raw(body)
}

// sheet writes what is known of one thing, a name and a value in each row. Rows without
// a value are left out, and no value is cut.
func (s screen) sheet(rows ...[]cell) error {
	s.width = 0
	return s.columns(slices.DeleteFunc(rows, func(row []cell) bool { return row[1].text == "" }))
}

// section writes a headline and a text that has its line breaks.
func (s screen) section(head, text string) error {
	return s.text("\n" + s.paint(bold, head) + "\n" + text + "\n")
}

// colour is an SGR code; "" is none.
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

// cell is one field of a table.
type cell struct {
	text  string
	paint colour
}

func cells(texts ...string) []cell {
	row := make([]cell, len(texts))
	for i, text := range texts {
		row[i] = cell{text: text}
	}
	return row
}

// table writes rows under a header. An empty field is a dash, except in the last
// column, which is cut where the terminal ends.
func (s screen) table(header []string, rows [][]cell) error {
	head := cells(header...)
	for i := range head {
		head[i].paint = bold
	}
	return s.columns(append([][]cell{head}, rows...))
}

// gap is the room between two columns.
const gap = 2

// columns writes rows of the same length side by side.
func (s screen) columns(rows [][]cell) error {
	if len(rows) == 0 {
		return nil
	}
	last := len(rows[0]) - 1
	widths := make([]int, last)
	for _, row := range rows {
		for i := range row {
			if row[i].text = oneLine(row[i].text); row[i].text == "" && i < last {
				row[i].text = "-"
			}
			if i < last {
				widths[i] = max(widths[i], utf8.RuneCountInString(row[i].text))
			}
		}
	}
	left := s.width
	for _, w := range widths {
		left -= w + gap
	}
	var b, line strings.Builder
	for _, row := range rows {
		line.Reset()
		for i, w := range widths {
			line.WriteString(s.paint(row[i].paint, row[i].text))
			line.WriteString(strings.Repeat(" ", w-utf8.RuneCountInString(row[i].text)+gap))
		}
		tail := row[last].text
		if s.width > 0 {
			tail = cut(tail, max(left, minTail))
		}
		line.WriteString(s.paint(row[last].paint, tail))
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	return s.text(b.String())
}

// minTail is the least that is shown of the last column, however narrow the
// terminal is.
const minTail = 16

// cut shortens the text to at most n characters.
func cut(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	runes := []rune(text)
	return string(runes[:n-1]) + "…"
}

// visible makes what could steer a terminal visible: control characters other
// than line feed and tab, and the marks that turn the direction of writing. What
// servers and tools say is not ours.
func visible(text string) string {
	if strings.IndexFunc(text, steers) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if steers(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func steers(r rune) bool {
	return r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// oneLine is the text on one line, with what could steer a terminal visible.
func oneLine(text string) string {
	return visible(strings.Join(strings.Fields(text), " "))
}

// size says a number of bytes in words.
func size(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 999_500: // it would be rounded to 1000 kB
		return fmt.Sprintf("%d kB", (n+500)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// pretty indents JSON without touching its values. What is not JSON stays as it is.
func pretty(raw []byte) string {
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(raw), "", "  "); err != nil {
		return string(raw)
	}
	return b.String()
}

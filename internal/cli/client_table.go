package cli

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

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

const (
	// columnGap separates two columns.
	columnGap = 2
	// A column is shortened to minColumn, and the last one, which holds text, to minText, before
	// columns are omitted. A column of at most stateColumn, such as a state, is never shortened.
	minColumn   = 8
	stateColumn = len("succeeded")
	minText     = 16
)

// table writes rows under a header. An empty field is a dash, except in the last column.
// On a terminal a row is one line: long fields are shortened, and if that is not enough, columns
// are omitted and named below the table. A last column without text, such as the errors of servers
// that have none, is omitted first.
func (s screen) table(header []string, rows [][]cell) error {
	header, rows = s.withoutEmptyText(header, rows)
	head := cells(header...)
	for i := range head {
		head[i].paint = bold
	}
	all := append([][]cell{head}, rows...)
	widths := naturalWidths(all)
	kept := fit(widths, header, s.width)
	if err := s.columns(all, widths, kept); err != nil || len(kept) == len(header) {
		return err
	}
	var left []string
	for i, name := range header {
		if widths[i] == 0 {
			left = append(left, name)
		}
	}
	names, hint := "Not shown: "+strings.Join(left, ", ")+".", "--output yaml shows all."
	if columnsOf(names)+1+columnsOf(hint) <= s.width {
		return s.text(s.paint(faint, names+" "+hint) + "\n")
	}
	return s.text(s.paint(faint, shorten(names, s.width)) + "\n" + s.paint(faint, shorten(hint, s.width)) + "\n")
}

// withoutEmptyText removes the last column if it has no text and the table is too wide for the
// terminal.
func (s screen) withoutEmptyText(header []string, rows [][]cell) ([]string, [][]cell) {
	last := len(header) - 1
	if s.width <= 0 || last < 2 || len(rows) == 0 {
		return header, rows
	}
	widths := make([]int, last+1)
	for i, name := range header {
		widths[i] = columnsOf(name)
	}
	total := last * columnGap
	for _, row := range rows {
		if row[last].text != "" {
			return header, rows
		}
		for i := range row {
			widths[i] = max(widths[i], columnsOf(oneLine(row[i].text)))
		}
	}
	for _, w := range widths {
		total += w
	}
	if total <= s.width {
		return header, rows
	}
	short := make([][]cell, len(rows))
	for i, row := range rows {
		short[i] = row[:last]
	}
	return header[:last], short
}

// naturalWidths puts each field on one line and returns the width of each column.
func naturalWidths(rows [][]cell) []int {
	widths := make([]int, len(rows[0]))
	last := len(widths) - 1
	for _, row := range rows {
		for i := range row {
			if row[i].text = oneLine(row[i].text); row[i].text == "" && i < last {
				row[i].text = "-"
			}
			widths[i] = max(widths[i], columnsOf(row[i].text))
		}
	}
	return widths
}

// fit shortens the widths until a row fits into limit columns, and returns the indexes of the
// columns to keep. It sets the width of the others to 0. The first column is shortened last because
// it identifies the row. The last column is kept because it has the reason. A limit of 0 means no
// limit.
func fit(widths []int, header []string, limit int) (kept []int) {
	last := len(widths) - 1
	least := make([]int, len(widths))
	for i, w := range widths {
		if least[i] = w; w > stateColumn {
			least[i] = min(w, max(minColumn, columnsOf(header[i])))
		}
		kept = append(kept, i)
	}
	least[last] = min(widths[last], minText)
	if limit <= 0 {
		return kept
	}
	least[0] = min(widths[0], max(minColumn, limit*3/5))
	total := func(of []int) int {
		n := (len(kept) - 1) * columnGap
		for _, i := range kept {
			n += of[i]
		}
		return n
	}
	for len(kept) > 3 && total(least) > limit {
		drop := kept[len(kept)-2]
		kept = append(kept[:len(kept)-2], last)
		widths[drop] = 0
	}
	for total(widths) > limit {
		widest := -1
		for _, i := range kept {
			if widths[i] > least[i] && (widest < 0 || widths[i] >= widths[widest]) {
				widest = i
			}
		}
		if widest < 0 { // narrower than any table: shorten all columns
			for _, i := range kept {
				if widths[i] > 1 && (widest < 0 || widths[i] > widths[widest]) {
					widest = i
				}
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return kept
}

// columns writes the kept columns of the rows side by side.
func (s screen) columns(rows [][]cell, widths, kept []int) error {
	var b, line strings.Builder
	for _, row := range rows {
		line.Reset()
		for n, i := range kept {
			text := shorten(row[i].text, widths[i])
			line.WriteString(s.paint(row[i].paint, text))
			if n < len(kept)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-columnsOf(text)+columnGap))
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	return s.text(b.String())
}

// shorten cuts a text to at most n columns of a terminal. If it cuts, the last column shows that.
func shorten(text string, n int) string {
	if columnsOf(text) <= n {
		return text
	}
	at := 0
	for i, r := range text {
		if at += columnsOfRune(r); at > n-1 {
			return text[:i] + "…"
		}
	}
	return text
}

// columnsOf returns the number of terminal columns of a text.
func columnsOf(text string) (n int) {
	for _, r := range text {
		n += columnsOfRune(r)
	}
	return n
}

func columnsOfRune(r rune) int {
	switch {
	case r < 0x300: // most text
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

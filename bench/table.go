package bench

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// WriteTable writes the medians as aligned text, one block for each size.
func (r *Report) WriteTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Medians of %s, %s, %s\n", r.roundsText(), r.Date.Format("2006-01-02"), r.Machine)
	b.WriteString("Times in ms; CPU in µs for each call, all processes, then by process. The generator's CPU holds the client of a direct target.\n")
	for _, size := range r.Sizes {
		fmt.Fprintf(&b, "\n%s\n", bytesText(size))
		r.block(&b, size)
	}
	r.faults(&b)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}

// block writes the rows of one size.
func (r *Report) block(b *strings.Builder, size int) {
	rows := [][]string{{"c", "target", "calls/s", "× sdk", "p50", "p90", "p99", "max", "errors", "CPU", "of which"}}
	last := 0
	for _, c := range r.Cells {
		if c.Size != size {
			continue
		}
		if last != 0 && c.Concurrency != last {
			rows = append(rows, nil)
		}
		last = c.Concurrency
		m := c.Median
		ratio := "–"
		if c.Ratio > 0 {
			ratio = strconv.FormatFloat(c.Ratio, 'f', 2, 64)
		}
		total, parts := cpuText(m.CPU)
		rows = append(rows, []string{
			strconv.Itoa(c.Concurrency), c.Target, countText(m.Rate), ratio,
			milliText(m.P50), milliText(m.P90), milliText(m.P99), milliText(m.Max),
			strconv.FormatInt(m.Errors, 10), total, parts,
		})
	}
	writeAligned(b, rows, func(column int) bool { return column == 1 || column == 10 })
}

// faults writes the errors.
func (r *Report) faults(b *strings.Builder) {
	first := true
	for _, c := range r.Cells {
		for _, text := range slices.Sorted(maps.Keys(c.Median.Failures)) {
			if first {
				b.WriteString("\nErrors\n")
				first = false
			}
			fmt.Fprintf(b, "  %s, %s, c=%d: %d × %s\n", c.Target, bytesText(c.Size), c.Concurrency, c.Median.Failures[text], text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Absent)) {
		fmt.Fprintf(b, "\n%s was left out: %s\n", name, r.Absent[name])
	}
}

// writeAligned writes rows in aligned columns, right-aligned unless left returns true. A nil
// row is an empty line.
func writeAligned(b *strings.Builder, rows [][]string, left func(column int) bool) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			line.WriteString("  ")
			if left(i) {
				line.WriteString(cell + pad)
			} else {
				line.WriteString(pad + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
}

// cpuText returns the sum and the parts, the largest first.
func cpuText(used map[string]float64) (total, parts string) {
	if len(used) == 0 {
		return "–", ""
	}
	names := slices.SortedFunc(maps.Keys(used), func(a, b string) int {
		if used[a] != used[b] {
			if used[a] > used[b] {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	var (
		sum  float64
		each []string
	)
	for _, name := range names {
		sum += used[name]
		each = append(each, name+" "+microText(used[name]))
	}
	return microText(sum), strings.Join(each, ", ")
}

func (r *Report) roundsText() string {
	many := "s"
	if r.RoundCount == 1 {
		many = ""
	}
	return fmt.Sprintf("%d round%s of %g s", r.RoundCount, many, r.DurationSeconds)
}

// bytesText formats a size for people.
func bytesText(n int) string {
	switch {
	case n >= 1_000_000:
		return strconv.FormatFloat(float64(n)/1e6, 'g', 4, 64) + " MB"
	case n >= 1000:
		return strconv.FormatFloat(float64(n)/1e3, 'g', 4, 64) + " kB"
	}
	return strconv.Itoa(n) + " B"
}

// countText formats a rate with its significant digits.
func countText(x float64) string {
	if x < 100 {
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 0, 64)
}

// milliText formats microseconds as milliseconds with three significant digits.
func milliText(us float64) string {
	ms := us / 1000
	switch {
	case ms == 0:
		return "–"
	case ms < 1:
		return strconv.FormatFloat(ms, 'f', 3, 64)
	case ms < 10:
		return strconv.FormatFloat(ms, 'f', 2, 64)
	case ms < 100:
		return strconv.FormatFloat(ms, 'f', 1, 64)
	}
	return strconv.FormatFloat(ms, 'f', 0, 64)
}

func microText(us float64) string {
	if us < 10 {
		return strconv.FormatFloat(us, 'f', 1, 64)
	}
	return strconv.FormatFloat(us, 'f', 0, 64)
}

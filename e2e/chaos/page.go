package chaos

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Short summarizes the campaign in one line.
func (r *Report) Short() string {
	var parts []string
	for _, state := range slices.Sorted(maps.Keys(r.States)) {
		part := fmt.Sprintf("%d %s", r.States[state], state)
		if state == "unknown" {
			part += fmt.Sprintf(" (at most %d)", r.UnknownMost)
		}
		parts = append(parts, part)
	}
	text := fmt.Sprintf("%d calls: %s; %d lost, %d ran twice", r.Calls, strings.Join(parts, ", "), r.Lost, r.Duplicates)
	var back, serving, settled time.Duration
	for _, s := range r.Scars {
		back, serving, settled = max(back, s.Back), max(serving, s.Serving), max(settled, s.Settled)
	}
	if n := len(r.Scars); n > 0 {
		faults := "1 fault"
		if n > 1 {
			faults = fmt.Sprintf("%d faults", n)
		}
		text += fmt.Sprintf("; %s, at most %.1f s until the victim was back, %.1f s until a new call succeeded, %.1f s until all that was under way had ended", faults, back.Seconds(), serving.Seconds(), settled.Seconds())
	}
	if r.Disturbed > 0 {
		text += fmt.Sprintf("; %d calls of bad servers at the same time", r.Disturbed)
	}
	if len(r.Findings) > 0 {
		text += fmt.Sprintf("; **%d findings**, the first: %s", len(r.Findings), r.Findings[0])
	}
	return text
}

// Result returns the outcome as one word.
func (o *Outcome) Result() string {
	switch {
	case o.LeftOut != "":
		return "left out"
	case o.Passed:
		return "as expected"
	}
	return "FAILED"
}

// shownBy names the campaign or the tests that covered the cell.
func (o *Outcome) shownBy() string {
	if o.Cell.Campaign != nil {
		return "campaign"
	}
	var names []string
	for _, t := range o.Cell.Tests {
		top, sub, _ := strings.Cut(t.Name, "/")
		name := fmt.Sprintf("`%s` in `%s`", top, strings.TrimPrefix(t.Package, "./"))
		if sub != "" {
			name += " (" + strings.ReplaceAll(sub, "_", " ") + ")"
		}
		names = append(names, name)
	}
	return strings.Join(names, "<br>")
}

// WritePage writes the outcomes as a Markdown table.
func WritePage(out io.Writer, all []Outcome) error {
	var text strings.Builder
	text.WriteString("| fault | of | expected | seen | result | shown by |\n|---|---|---|---|---|---|\n")
	before := ""
	for _, o := range all {
		fault := o.Cell.Fault
		if fault == before {
			fault = ""
		}
		before = o.Cell.Fault
		saw := o.Saw
		if o.LeftOut != "" {
			saw = o.LeftOut
		}
		for _, column := range []string{fault, o.Cell.Where, o.Cell.Expect, saw, o.Result(), o.shownBy()} {
			text.WriteString("| " + strings.ReplaceAll(column, "|", "\\|") + " ")
		}
		text.WriteString("|\n")
	}
	if _, err := io.WriteString(out, text.String()); err != nil {
		return fmt.Errorf("writing the matrix: %w", err)
	}
	return nil
}

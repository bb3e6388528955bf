package bench

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// publishedText holds the figures of the papers. A row that is missing in it has no published
// figure in the table.
//
//go:embed published.json
var publishedText []byte

// publishedFigures maps the keys of rows to figures.
type publishedFigures map[string]struct {
	Value  float64 `json:"value"`
	Source string  `json:"source"`
}

func readPublished(text []byte) (publishedFigures, error) {
	figures := publishedFigures{}
	if err := json.Unmarshal(text, &figures); err != nil {
		return nil, fmt.Errorf("reading the published figures: %w", err)
	}
	for key, f := range figures {
		if f.Value <= 0 || f.Source == "" {
			return nil, fmt.Errorf("the published figure %q needs a value above 0 and a source", key)
		}
	}
	return figures, nil
}

// comparison is a row of the published benchmark: our figure, the published figure and
// the figure of a peer that was measured in the same run. 0 means unknown.
type comparison struct {
	key              string // of the published figure
	part, what, unit string
	more             bool // larger is better
	against          string
	theirs, ours     float64
	most             float64 // the absolute limit of our figure
	share            float64 // the maximum ratio of our figure to the peer's; 0 means 1
	shown            bool    // informational: our figure need not be better
	note             string  // the reason for a missing figure
}

// verdict returns the verdict on our figure and whether it holds. A peer measured in the same
// run takes precedence over the published figure, which is from another machine.
func (c *comparison) verdict(published float64) (text string, holds bool) {
	ahead := func(other, share float64) bool {
		if c.more {
			return c.ours*share >= other
		}
		return c.ours <= other*share
	}
	share := cmp.Or(c.share, 1)
	switch {
	case c.ours == 0:
		return "not measured: " + c.note, true
	case c.most > 0 && c.ours > c.most:
		return "MISSED: at most " + amountText(c.most), false
	case c.shown:
		return "", true
	case c.theirs > 0 && !ahead(c.theirs, share):
		if c.share > 0 {
			return fmt.Sprintf("MISSED: at most %.2g of it", c.share), false
		}
		return "MISSED", false
	case c.theirs > 0 && c.ours == c.theirs:
		return "equal", true
	case c.theirs > 0:
		return "ahead", true
	case published > 0 && !ahead(published, 1):
		return "MISSED", false
	case published > 0 && c.ours == published:
		return "equal to the published", true
	case published > 0:
		return "ahead of the published", true
	case c.most > 0:
		return "holds", true
	}
	return "", true
}

// amountText formats a figure with its significant digits.
func amountText(x float64) string {
	switch {
	case x == 0:
		return "–"
	case x >= 100:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case x >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case x >= 1:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return strconv.FormatFloat(x, 'f', 3, 64)
}

// writeComparisons writes the table. The error lists the rows that do not hold.
func writeComparisons(w io.Writer, rows []comparison, figures publishedFigures) error {
	table := [][]string{{"part", "what", "unit", "published", "measured with it", "", "ours", "ours ÷ that", ""}}
	var missed []string
	part := ""
	for _, c := range rows {
		if part != "" && part != c.part {
			table = append(table, nil)
		}
		part = c.part
		published := figures[c.key].Value
		ratio := "–"
		if c.theirs > 0 && c.ours > 0 {
			ratio = strconv.FormatFloat(c.ours/c.theirs, 'f', 2, 64)
		}
		text, holds := c.verdict(published)
		if !holds {
			missed = append(missed, c.part+", "+c.what)
		}
		against := c.against
		if c.theirs == 0 {
			against = ""
		}
		table = append(table, []string{c.part, c.what, c.unit, amountText(published), against, amountText(c.theirs), amountText(c.ours), ratio, text})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s\n", time.Now().UTC().Format("2006-01-02"), thisMachine())
	b.WriteString("Published figures are from other machines. What ours is compared with was measured in turns with it, in this run.\n")
	writeAligned(&b, table, func(column int) bool { return column < 3 || column == 4 || column == 8 })
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	if len(missed) > 0 {
		return fmt.Errorf("not ahead: %s", strings.Join(missed, "; "))
	}
	return nil
}

package toy

import (
	_ "embed" // for the page
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"percent":  func(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) },
	"interval": func(p Point) string { return fmt.Sprintf("%.1f to %.1f", 100*p.Low, 100*p.High) },
	"panel":    panel,
}).Parse(pageText))

// Report is the data of the page.
type Report struct {
	// Version is the version of Callyard, and Questions the number of questions for training.
	Version   string   `json:"version"`
	Questions int      `json:"questions"`
	HeldOut   int      `json:"held_out"`
	Settings  Settings `json:"settings"`
	Seeds     int      `json:"seeds"`
	Curves    []*Curve `json:"curves"`
	Seconds   float64  `json:"seconds"` // the duration of the training
}

// Cell holds the curves of one method and reward.
type Cell struct {
	Method, Reward string
	Curves         []*Curve
}

// Cells returns the cells of a reward, in the order of the methods.
func (r *Report) Cells(reward string) (out []Cell) {
	for _, m := range Methods() {
		cell := Cell{Method: m, Reward: reward}
		for _, c := range r.Curves {
			if c.Method == m && c.Reward == reward {
				cell.Curves = append(cell.Curves, c)
			}
		}
		if len(cell.Curves) > 0 {
			out = append(out, cell)
		}
	}
	return out
}

// Rewards returns the rewards for which the report has curves.
func (r *Report) Rewards() (out []string) {
	for _, name := range Rewards() {
		if len(r.Cells(name)) > 0 {
			out = append(out, name)
		}
	}
	return out
}

// First and Last return the mean accuracies before and after training.
func (c Cell) First() float64 { return c.mean((*Curve).First) }

// Last is described with First.
func (c Cell) Last() float64 { return c.mean((*Curve).Last) }

func (c Cell) mean(of func(*Curve) Point) float64 {
	sum := 0.0
	for _, one := range c.Curves {
		sum += of(one).Accuracy()
	}
	return sum / float64(len(c.Curves))
}

// Apart returns the number of seeds whose interval after training lies above that before.
func (c Cell) Apart() (n int) {
	for _, one := range c.Curves {
		if one.Last().Low > one.First().High {
			n++
		}
	}
	return n
}

// Masked returns the number of episodes without a valid result.
func (r *Report) Masked() (n int) {
	for _, c := range r.Curves {
		n += c.Masked
	}
	return n
}

// Episodes returns the number of episodes, without the groups that DAPO drew again.
func (r *Report) Episodes() (n int) {
	for _, c := range r.Curves {
		n += r.Settings.Steps*r.Settings.Questions*r.Settings.Group + len(c.Points)*r.HeldOut
	}
	return n
}

// Write writes the page. It is one file, without scripts and external resources.
func (r *Report) Write(w io.Writer) error { return page.Execute(w, r) }

// Check returns an error unless the runs of GRPO with the whole reward show what the report
// promises: an accuracy of at most 0.05 before and of at least 0.80 afterwards, with intervals
// that do not overlap, for each seed.
func (r *Report) Check() error {
	var faults []string
	seen := 0
	for _, c := range r.Curves {
		if c.Method != GRPO || c.Reward != Full {
			continue
		}
		seen++
		if first, last := c.First(), c.Last(); first.Accuracy() > 0.05 || last.Accuracy() < 0.80 || last.Low <= first.High {
			faults = append(faults, fmt.Sprintf("seed %d went from %.3f to %.3f", c.Seed, first.Accuracy(), last.Accuracy()))
		}
	}
	if seen == 0 || len(faults) > 0 {
		return fmt.Errorf("of %d runs of GRPO with the whole reward these did not learn: %s", seen, strings.Join(faults, "; "))
	}
	return nil
}

// panel draws the curves of a cell over the steps.
func panel(c Cell) template.HTML {
	const width, height, left, bottom = 210.0, 150.0, 28.0, 18.0
	last := 1
	for _, one := range c.Curves {
		last = max(last, one.Last().Step)
	}
	x := func(step int) float64 { return left + (width-left-6)*float64(step)/float64(last) }
	y := func(share float64) float64 { return 6 + (height-bottom-6)*(1-share) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg role="img" aria-label="Held-out accuracy of %s with the reward %s over training steps" viewBox="0 0 %.0f %.0f" width="%.0f">`, c.Method, c.Reward, width, height, width)
	for _, share := range []float64{0, 0.5, 1} {
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/><text x="%.1f" y="%.1f" text-anchor="end">%.0f</text>`, left, y(share), width-6, y(share), left-4, y(share)+4, 100*share)
	}
	fmt.Fprintf(&b, `<text x="%.1f" y="%.1f">0</text><text x="%.1f" y="%.1f" text-anchor="end">%d steps</text>`, left, height-4, width-6, height-4, last)
	for i, one := range c.Curves {
		var line, over, under []string
		for _, p := range one.Points {
			line = append(line, fmt.Sprintf("%.1f,%.1f", x(p.Step), y(p.Accuracy())))
			over = append(over, fmt.Sprintf("%.1f,%.1f", x(p.Step), y(p.High)))
			under = append([]string{fmt.Sprintf("%.1f,%.1f", x(p.Step), y(p.Low))}, under...)
		}
		fmt.Fprintf(&b, `<polygon class="band s%d" points="%s"/><polyline class="curve s%d" points="%s"/>`, i%5, strings.Join(append(over, under...), " "), i%5, strings.Join(line, " "))
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) //nolint:gosec // names and numbers are ours
}

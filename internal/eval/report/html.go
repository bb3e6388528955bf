package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/stage"
	"github.com/callyard/callyard/internal/eval/stats"
)

//go:embed page.html
var pageText string

// MaxShown limits the number of samples on a page.
const MaxShown = 300

// Page is the content of a page.
type Page struct {
	// Title names the run.
	Title  string
	Report *Report
	Scores []stage.Score
	// Level is the level of the tables by category.
	Level eval.Level
	// Other is the run to compare with, or nil.
	Other      []stage.Score
	OtherTitle string
	Comparison *Comparison
}

// view is the data of the template.
type view struct {
	Page
	Level       *Level
	Names       []string
	Types       []eval.Type
	Radar, Bars template.HTML
	Samples     []Differing
	More        bool
	Scoring     string
}

// Write writes the page. It is self-contained: it loads nothing and has no script.
func (p *Page) Write(w io.Writer) error {
	page, err := template.New("page").Funcs(template.FuncMap{
		"percent": percent, "number": number, "interval": interval, "p": pValue, "heat": heat,
		"tools": func(names []string) string { return strings.Join(names, ", ") },
	}).Parse(pageText)
	if err != nil {
		return fmt.Errorf("reading the template: %w", err)
	}
	scoring, err := json.Marshal(p.Report.Scoring)
	if err != nil {
		return fmt.Errorf("encoding the settings: %w", err)
	}
	v := &view{Page: *p, Level: p.Report.At(p.Level), Names: MetricNames(), Types: eval.Types(), Scoring: string(scoring)}
	if p.Comparison != nil {
		v.Samples = differing(p.Scores, p.Other, p.Level, MaxShown+1)
	} else {
		v.Samples = Wrong(p.Scores, p.Level, MaxShown+1)
	}
	if v.More = len(v.Samples) > MaxShown; v.More {
		v.Samples = v.Samples[:MaxShown]
	}
	v.Radar, v.Bars = radar(v.Level), bars(v.Level)
	return page.Execute(w, v)
}

func percent(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }
func number(v float64) string  { return fmt.Sprintf("%.3f", v) }

func interval(e stats.Estimate) string { return fmt.Sprintf("[%.1f, %.1f]", 100*e.Low, 100*e.High) }

func pValue(v any) string {
	value := 0.0
	switch v := v.(type) {
	case float64:
		value = v
	case *float64:
		value = *v
	}
	if value < 0.0005 {
		return "<0.001"
	}
	return fmt.Sprintf("%.3f", value)
}

// heat returns the color of a share, from red over yellow to green, light enough for dark text.
func heat(v float64) template.CSS {
	return template.CSS(fmt.Sprintf("hsl(%.0f 60%% 72%%)", 120*max(0, min(1, v)))) //nolint:gosec // it has a number in it alone
}

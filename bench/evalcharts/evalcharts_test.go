package evalcharts

import (
	"bytes"
	"encoding/json"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/report"
	"github.com/callyard/callyard/internal/eval/stats"
)

func made(categories ...string) *report.Report {
	e := stats.Estimate{Mean: 0.6, Low: 0.5, High: 0.7}
	m := report.Metrics{Precision: e, Recall: e, F1: e, Accuracy: e}
	r := &report.Report{Samples: 10}
	r.Scoring.Reward = &eval.Reward{Name: "default-1"}
	r.Rewards = []report.Reward{{Name: "full", Mean: e}, {Name: "format only", Mean: stats.Estimate{Mean: -0.5, Low: -0.7, High: -0.2}}}
	for _, level := range eval.Levels() {
		l := report.Level{Level: level, Micro: m, Macro: m}
		for _, name := range categories {
			l.Categories = append(l.Categories, report.Category{Name: name, Samples: 5, Metrics: m, Types: map[eval.Type]int{eval.TypeCorrect: 3, eval.TypeWrong: 2}})
		}
		r.Levels = append(r.Levels, l)
	}
	return r
}

func TestEveryChartIsDrawnReproducibly(t *testing.T) {
	base := t.TempDir()
	for _, name := range []string{"a", "b"} {
		text, err := json.Marshal(made("files", "web", "a category with a name that is much too long", "größe"))
		if err == nil {
			err = os.MkdirAll(filepath.Join(base, name), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(base, name, "report.json"), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	one, two := filepath.Join(base, "one"), filepath.Join(base, "two")
	for _, to := range []string{one, two} {
		if err := Main([]string{"published", to, filepath.Join(base, "a"), filepath.Join(base, "b")}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"table.png", "heatmap.png", "radar.png", "failures.png", "rewards.png"} {
		a, err := os.ReadFile(filepath.Join(one, name))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(two, name)); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs the second time, %v", name, err)
		}
		image, err := png.Decode(bytes.NewReader(a))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		shades := map[color.Color]int{}
		for y := range image.Bounds().Dy() {
			for x := range image.Bounds().Dx() {
				shades[image.At(x, y)]++
			}
		}
		if len(shades) < 10 {
			t.Errorf("%s has %d colours, so nothing is drawn", name, len(shades))
		}
	}
}

func TestFaultyReportsAreRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "report.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{nil, {"published", dir}, {"other", dir, dir}, {"strict", dir, dir}, {"strict", dir, filepath.Join(dir, "none")}} {
		if err := Main(args); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
	if got := (&Charts{Report: made("one", "two"), Level: eval.Strict}).Files(); len(got) != 4 {
		t.Errorf("two categories have a radar chart: %v", got)
	}
}

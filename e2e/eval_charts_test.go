package e2e

import (
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestChartsOfAnEvaluationAreDrawn scores answers, and writes the charts of `callyard eval
// report --png`, with the drawing program next to callyard.
func TestChartsOfAnEvaluationAreDrawn(t *testing.T) {
	withBench(t)
	dir := t.TempDir()
	var data, answers strings.Builder
	for i := range 30 {
		fmt.Fprintf(&data, `{"id":"s%d","category":"c%d","question":"q","tools":["read","write"],"target_tools":"read"}`+"\n", i, i%3)
		fmt.Fprintf(&answers, `{"id":"s%d","text":"<tool_call>{\"name\":\"%s\"}</tool_call>"}`+"\n", i, []string{"read", "write"}[i%4/3])
	}
	write(t, filepath.Join(dir, "data.jsonl"), data.String())
	write(t, filepath.Join(dir, "answers.jsonl"), answers.String())
	for _, args := range [][]string{
		{"score", "run", "--data", "jsonl:data.jsonl", "--responses", "answers.jsonl"},
		{"report", "run", "--png", "charts", "--html", "report.html"},
	} {
		ran := runTool(t, time.Minute, dir, filepath.Join(bin(t), "callyard"), append([]string{"eval"}, args...)...)
		if ran.code != 0 {
			t.Fatalf("%v ends with %d: %s%s", args, ran.code, ran.out, ran.errors)
		}
	}
	for _, name := range []string{"table", "heatmap", "radar", "failures", "rewards"} {
		file, err := os.Open(filepath.Join(dir, "charts", name+".png"))
		if err != nil {
			t.Error(err)
			continue
		}
		image, err := png.Decode(file)
		if err != nil || image.Bounds().Dx() < 300 || image.Bounds().Dy() < 100 {
			t.Errorf("%s: %v, %v", name, image, err)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
	if page, err := os.ReadFile(filepath.Join(dir, "report.html")); err != nil || !strings.Contains(string(page), "<svg") {
		t.Errorf("the page: %v", err)
	}
}

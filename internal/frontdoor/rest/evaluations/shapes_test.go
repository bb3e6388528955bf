package evaluations

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/report"
	"github.com/callyard/callyard/internal/eval/rundir"
	"github.com/callyard/callyard/internal/eval/runs"
	"github.com/callyard/callyard/internal/eval/stage"
	"github.com/callyard/callyard/internal/eval/stats"
	"github.com/callyard/callyard/pkg/schema"
)

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// scored creates a run with two trials of a conversation, and returns its folder.
func scored(t *testing.T) string {
	t.Helper()
	dir, in := t.TempDir(), t.TempDir()
	_, err := rundir.Score(t.Context(), rundir.Options{
		Dir:       filepath.Join(dir, "a"),
		Data:      "jsonl:" + write(t, filepath.Join(in, "d.jsonl"), `{"id":"1","category":"x","tools":["a","b"],"turns":[{"question":"One.","target_tools":"a"},{"question":"Two.","target_tools":"b"}]}`+"\n"+`{"id":"2","question":"q","tools":["a"],"target_tools":"a"}`+"\n"),
		Responses: write(t, filepath.Join(in, "r.jsonl"), `{"id":"1","turns":[[{"text":"<tool_call>{\"name\":\"a\"}</tool_call>"}],[]]}`+"\n"+`{"id":"1","trial":1,"turns":[]}`+"\n"),
		Scoring:   stage.Settings{Missing: stage.MissingSkip}, Version: "v1",
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// A member of report.json that the shape does not list would be lost.
func TestResponseHasEveryMemberOfAReport(t *testing.T) {
	r, err := runs.New(scored(t)).Report("a")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Turns) != 2 || len(r.Skipped) != 1 {
		t.Fatalf("the report does not have what this test is about: %+v", r)
	}
	one := stats.Estimate{Mean: 0.5, Low: 0.25, High: 1}
	r.Similar, r.Check = &one, &report.Checked{Valid: one, Categories: map[string]float64{"x": 1}, Errors: map[string]int{"y": 2}}
	r.Executed = &report.Executed{Answers: 1, Masked: 2, Calls: 3, Refused: 4, OK: 5, Denied: 6, Run: &one, Results: &one, State: &one, Why: map[string]int{"z": 1}}
	r.Pass = []report.Pass{{K: 2, AtLeastOne: one, All: one}}
	told, err := shapeOf("a", r)
	if err != nil || told.ID != "a" || told.Levels[0].Level != string(eval.Strict) {
		t.Fatalf("%+v, %v", told, err)
	}
	decode := func(v any) (members map[string]any) {
		text, err := json.Marshal(v)
		if err == nil {
			err = json.Unmarshal(text, &members)
		}
		if err != nil {
			t.Fatal(err)
		}
		return members
	}
	got, want := decode(told), decode(r)
	delete(got, "id")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-report +shape)\n%s", diff)
	}
}

func TestSparseReportHasNoUndocumentedNulls(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "a", stage.ReportFile), `{"levels":[{"level":"published"}],"scoring":{"reward":{"name":"r"}}}`)
	r, err := runs.New(dir).Report("a")
	if err != nil {
		t.Fatal(err)
	}
	told, err := shapeOf("a", r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(told)
	if err != nil || strings.Contains(strings.ReplaceAll(string(text), `"types":null`, ""), ":null") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestWithoutEvaluationsFolderReturnsNotFound(t *testing.T) {
	h := &handlers{}
	if _, err := h.list(nil, nil); schema.KindOf(err) != schema.KindNotFound || !strings.Contains(err.Error(), "front_door.evaluations") {
		t.Errorf("the list: %v", err)
	}
	if _, err := h.get(nil, nil); schema.KindOf(err) != schema.KindNotFound {
		t.Errorf("a report: %v", err)
	}
	if err := h.page(nil, nil); schema.KindOf(err) != schema.KindNotFound {
		t.Errorf("a page: %v", err)
	}
}

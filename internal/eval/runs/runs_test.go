package runs

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/eval/rundir"
	"github.com/callyard/callyard/internal/eval/stage"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func put(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// score creates a run with two samples, of which one is right.
func score(t *testing.T, dir string) {
	t.Helper()
	in := t.TempDir()
	_, err := rundir.Score(t.Context(), rundir.Options{
		Dir:       dir,
		Data:      "jsonl:" + put(t, filepath.Join(in, "d.jsonl"), `{"id":"1","category":"x","question":"q","tools":["a","b"],"target_tools":"a"}`+"\n"+`{"id":"2","category":"<script>y","question":"q","tools":["a","b"],"target_tools":"b"}`+"\n"),
		Responses: put(t, filepath.Join(in, "r.jsonl"), `{"id":"1","text":"<tool_call>{\"name\":\"a\"}</tool_call>"}`+"\n"+`{"id":"2","text":"<tool_call>{\"name\":\"a\"}</tool_call>"}`+"\n"),
		Scoring:   stage.Settings{Missing: stage.MissingError}, Version: "v1",
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheRunsOfAFolderAreListedTheNewestFirst(t *testing.T) {
	dir := t.TempDir()
	score(t, filepath.Join(dir, "b<i>"))
	score(t, filepath.Join(dir, "a"))
	put(t, filepath.Join(dir, "asked", stage.ResponsesFile), "{}\n")
	put(t, filepath.Join(dir, "broken", stage.ReportFile), "{}")
	put(t, filepath.Join(dir, "notes", "readme.txt"), "none of ours")
	put(t, filepath.Join(dir, ".hidden", stage.ReportFile), "{}")
	put(t, filepath.Join(dir, stage.ReportFile), "{}")
	for i, name := range []string{"a/report.json", "b<i>/report.json", "broken/report.json", "asked/responses.jsonl"} {
		at := time.Unix(int64(1_000_000-i), 0)
		if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	s := New(dir)
	for range 2 { // the second time, the cache is used
		runs, all, err := s.List()
		if err != nil || all != 4 || len(runs) != 4 {
			t.Fatalf("%+v of %d, %v", runs, all, err)
		}
		if r := runs[0]; r.Name != "a" || !r.Scored || r.Samples != 2 || r.Accuracy.Mean != 0.5 || !r.At.Equal(time.Unix(1_000_000, 0)) {
			t.Errorf("%+v", r)
		}
		if runs[1].Name != "b<i>" || runs[2].Scored || runs[2].Fault == "" || runs[3].Scored || !strings.Contains(runs[3].Fault, "not scored") {
			t.Errorf("%+v", runs)
		}
	}
	put(t, filepath.Join(dir, "a", stage.ReportFile), "{")
	if runs, _, err := s.List(); err != nil || runs[0].Scored {
		t.Errorf("a report that changed: %+v, %v", runs, err)
	}
	if _, _, err := New(filepath.Join(dir, "none")).List(); schema.KindOf(err) != schema.KindUnavailable {
		t.Errorf("no folder: %v", err)
	}
}

func TestRunPageIsServedOnlyFromTheFolder(t *testing.T) {
	above := t.TempDir()
	dir := filepath.Join(above, "runs")
	score(t, filepath.Join(dir, "a"))
	score(t, filepath.Join(above, "secret"))
	for name, to := range map[string]string{"away": filepath.Join(above, "secret"), "up": ".."} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(dir, "half", "x"), "")
	if err := os.Symlink(filepath.Join(above, "secret", stage.ReportFile), filepath.Join(dir, "half", stage.ReportFile)); err != nil {
		t.Fatal(err)
	}
	s := New(dir)
	var page bytes.Buffer
	if err := s.Write(&page, "a"); err != nil || !strings.Contains(page.String(), "Tool selection: a") || strings.Contains(page.String(), "<script") {
		t.Errorf("%v: %.200s", err, page.String())
	}
	for _, name := range []string{"", ".", "..", "../secret", "a/../../secret", "/" + filepath.Join(above, "secret"), "away", "up", "up/secret", "half", `..\secret`, "a\x00", "none", "a/"} {
		page.Reset()
		if err := s.Write(&page, name); schema.KindOf(err) != schema.KindNotFound || page.Len() > 0 {
			t.Errorf("%q: %v, %d bytes", name, err, page.Len())
		}
	}
	if runs, all, err := s.List(); err != nil || all != 1 || runs[0].Name != "a" {
		t.Errorf("%+v, %d, %v", runs, all, err)
	}
	put(t, filepath.Join(dir, "a", stage.ScoresFile), "{\n")
	if err := s.Write(&page, "a"); schema.KindOf(err) != schema.KindUnavailable {
		t.Errorf("scores that cannot be read: %v", err)
	}
}

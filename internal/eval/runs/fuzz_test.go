package runs

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/eval/stage"
)

// marked is a report with a text that no other file contains.
const marked = `{"samples":1,"data":"MARK","scoring":{"reward":{"name":"MARK"}},"levels":[{"level":"published"}]}`

func FuzzRunNamesStayInTheFolder(f *testing.F) {
	above := f.TempDir()
	dir := filepath.Join(above, "runs")
	for _, d := range []string{filepath.Join(dir, "a"), filepath.Join(above, "secret")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			f.Fatal(err)
		}
	}
	for _, file := range []string{stage.ReportFile, stage.ScoresFile} {
		if err := os.WriteFile(filepath.Join(above, "secret", file), map[bool][]byte{true: []byte(marked)}[file == stage.ReportFile], 0o600); err != nil {
			f.Fatal(err)
		}
	}
	if err := os.Symlink("../secret", filepath.Join(dir, "link")); err != nil {
		f.Fatal(err)
	}
	for _, name := range []string{"a", "../secret", "link", "a/../../secret", "..", "", "a\x00", `..\secret`, filepath.Join(above, "secret")} {
		f.Add(name)
	}
	s := New(dir)
	f.Fuzz(func(t *testing.T, name string) {
		var page bytes.Buffer
		if err := s.Write(&page, name); err == nil || strings.Contains(page.String(), "MARK") {
			t.Errorf("%q leads to %q, %v", name, page.String(), err)
		}
	})
}

func FuzzAnyReportIsListedOrRefused(f *testing.F) {
	for _, text := range []string{marked, `{}`, `{"levels":[{}],"scoring":{"reward":{}}}`, `{"levels":[{"level":"strict","categories":[{"name":"a"},{"name":"b"},{"name":"c"}]}],"scoring":{"reward":{}},"rewards":[{}],"check":{},"executed":{},"pass":[{}]}`, `[`, `null`} {
		f.Add([]byte(text), []byte(`{"id":"x"}`))
	}
	dir := f.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a"), 0o700); err != nil {
		f.Fatal(err)
	}
	s := New(dir)
	f.Fuzz(func(t *testing.T, text, scores []byte) {
		for file, content := range map[string][]byte{stage.ReportFile: text, stage.ScoresFile: scores} {
			if err := os.WriteFile(filepath.Join(dir, "a", file), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s.known = make(map[string]entry) // clear the cache, because another file with the same size and time would count as unchanged
		runs, all, err := s.List()
		if err != nil || all != 1 || runs[0].Scored == (runs[0].Fault != "") {
			t.Errorf("%+v, %v", runs, err)
		}
		var page bytes.Buffer
		if err := s.Write(&page, "a"); err == nil && (!runs[0].Scored || strings.Contains(strings.ToLower(page.String()), "<script")) {
			t.Errorf("a page of %s", text)
		}
	})
}

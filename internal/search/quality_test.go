package search

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/callyard/callyard/pkg/schema"
)

type question struct {
	text  string
	wants map[string]bool
}

func readLines(t testing.TB, file string, visit func(line []byte)) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		visit([]byte(line))
	}
}

func bfcl(t testing.TB, dir string) (part []Part, questions map[string][]question) {
	type fn struct {
		Name, Description string
		Parameters        json.RawMessage
	}
	seen := map[string]bool{}
	questions = map[string][]question{}
	var tools []*schema.Tool
	for _, set := range []string{"live_multiple", "live_simple", "multiple"} {
		answers := map[string][]map[string]json.RawMessage{}
		readLines(t, filepath.Join(dir, "possible_answer", "BFCL_v4_"+set+".json"), func(line []byte) {
			var a struct {
				ID    string                       `json:"id"`
				Truth []map[string]json.RawMessage `json:"ground_truth"`
			}
			if err := json.Unmarshal(line, &a); err != nil {
				t.Fatal(err)
			}
			answers[a.ID] = a.Truth
		})
		readLines(t, filepath.Join(dir, "BFCL_v4_"+set+".json"), func(line []byte) {
			var q struct {
				ID       string
				Question [][]struct{ Role, Content string }
				Function []fn
			}
			if err := json.Unmarshal(line, &q); err != nil {
				t.Fatal(err)
			}
			wants := map[string]bool{}
			for _, f := range q.Function {
				key := f.Name + "\x00" + f.Description
				for _, a := range answers[q.ID] {
					if _, ok := a[f.Name]; ok {
						wants[key] = true
					}
				}
				if seen[key] {
					continue
				}
				seen[key] = true
				raw, _ := json.Marshal(map[string]any{"name": f.Name, "description": f.Description, "inputSchema": f.Parameters})
				tools = append(tools, &schema.Tool{Server: "", Name: f.Name, Raw: raw, Digest: key})
			}
			var text []string
			for _, m := range q.Question[0] {
				if m.Role == "user" {
					text = append(text, m.Content)
				}
			}
			questions[set] = append(questions[set], question{strings.Join(text, " "), wants})
		})
	}
	return []Part{NewSegment(tools, nil).Without(nil)}, questions
}

var numbered = regexp.MustCompile(`^\s*\d+[.)]\s*`)

func items(text string) (all []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(numbered.ReplaceAllString(line, "")); line != "" {
			all = append(all, line)
		}
	}
	return all
}

func livemcp(t testing.TB, dir string) (parts []Part, steps, whole []question) {
	var servers []struct {
		Name  schema.ServerID `json:"server_name"`
		Tools []struct {
			Name, Description string
			Parameter         map[string]string
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "mcp_copilot", "config", "mcp_arg_Qwen3-Embedding-0.6B_qwen25_72b_int4_instruct.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &servers); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, s := range servers {
		var tools []*schema.Tool
		for _, x := range s.Tools {
			names[x.Name] = true
			props := map[string]any{}
			for n, d := range x.Parameter {
				props[n] = map[string]any{"description": d}
			}
			raw, _ := json.Marshal(map[string]any{"name": x.Name, "description": x.Description, "inputSchema": map[string]any{"properties": props}})
			tools = append(tools, &schema.Tool{Server: s.Name, Name: x.Name, Raw: raw, Digest: x.Name})
		}
		parts = append(parts, NewSegment(tools, nil).Without(nil))
	}
	var tasks []struct {
		Question string
		About    struct{ Steps, Tools string } `json:"Annotator Metadata"`
	}
	text, err = os.ReadFile(filepath.Join(dir, "annotation", "claude-sonnet-4-20250514_Qwen3-Embedding-0.6B.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &tasks); err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		st, tl := items(task.About.Steps), items(task.About.Tools)
		w := question{task.Question, map[string]bool{}}
		for _, x := range tl {
			if names[x] {
				w.wants[x] = true
			}
		}
		whole = append(whole, w)
		if len(st) != len(tl) {
			continue
		}
		for i := range st {
			if names[tl[i]] {
				steps = append(steps, question{st[i], map[string]bool{tl[i]: true}})
			}
		}
	}
	return parts, steps, whole
}

// recall is the share of what is wanted that is among the first k.
func recall(parts []Part, qs []question, k int) float64 {
	sum := 0.0
	for _, q := range qs {
		got := map[string]bool{}
		for _, h := range Find(parts, q.text, k).Hits {
			if key := parts[h.Part].Tool(h.At).Digest; q.wants[key] {
				got[key] = true
			}
		}
		if len(q.wants) > 0 {
			sum += float64(len(got)) / float64(len(q.wants))
		}
	}
	return sum / float64(len(qs))
}

func lines(t testing.TB, file string) (all []string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(text)) {
		if l = strings.TrimSpace(l); l != "" && l[0] != '#' {
			all = append(all, l)
		}
	}
	return all
}

// dataOf returns the folder with the data of a Python package that scripts/test.sh installed.
func dataOf(t testing.TB, variable, folder string) string {
	python := os.Getenv(variable)
	if python == "" {
		t.Skipf("%s is not set; see scripts/test.sh", variable)
	}
	dirs, _ := filepath.Glob(filepath.Join(filepath.Dir(python), "..", "lib", "python*", "site-packages", folder))
	if len(dirs) != 1 {
		t.Fatalf("%s has %d folders %s", variable, len(dirs), folder)
	}
	return dirs[0]
}

func atLeast(t *testing.T, what string, got, want float64) {
	t.Helper()
	t.Logf("%s: %.3f", what, got)
	if got < want-1e-9 {
		t.Errorf("%s: %.3f, want at least %.2f", what, got, want)
	}
}

func TestBFCLRecall(t *testing.T) {
	parts, questions := bfcl(t, dataOf(t, "CALLYARD_TEST_BFCL", "bfcl_eval/data"))
	if n := parts[0].Left(); n != 1557 || len(questions["live_multiple"]) != 1053 || len(questions["multiple"]) != 200 {
		t.Fatalf("the data has changed: %d functions, %d and %d questions", n, len(questions["live_multiple"]), len(questions["multiple"]))
	}
	atLeast(t, "live_multiple, recall@10", recall(parts, questions["live_multiple"], 10), 0.70)
	atLeast(t, "multiple, recall@5", recall(parts, questions["multiple"], 5), 0.92)
	atLeast(t, "live_simple, recall@10", recall(parts, questions["live_simple"], 10), 0)
}

func TestLiveMCPBenchRecall(t *testing.T) {
	parts, steps, whole := livemcp(t, dataOf(t, "CALLYARD_TEST_LIVEMCP", "baseline"))
	tools := 0
	for i := range parts {
		tools += parts[i].Left()
	}
	if tools != 526 || len(steps) != 95 || len(whole) != 95 {
		t.Fatalf("the data has changed: %d tools, %d steps, %d tasks", tools, len(steps), len(whole))
	}
	atLeast(t, "steps, recall@1", recall(parts, steps, 1), 0)
	atLeast(t, "steps, recall@5", recall(parts, steps, 5), 0.70)
	atLeast(t, "steps, recall@10", recall(parts, steps, 10), 0.74)
	atLeast(t, "whole tasks, recall@10", recall(parts, whole, 10), 0)
	queries := lines(t, filepath.Join("testdata", "no-answer.txt"))
	empty := 0
	for _, q := range queries {
		if r := Find(parts, q, 5); len(r.Hits) == 0 {
			empty++
		} else {
			h := r.Hits[0]
			t.Logf("%q finds %s", q, parts[h.Part].Tool(h.At).Name)
		}
	}
	if len(queries) != 50 {
		t.Fatalf("%d queries", len(queries))
	}
	atLeast(t, "no-answer queries, share that finds nothing", float64(empty)/50, 0.90)
}

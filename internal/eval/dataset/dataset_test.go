package dataset

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/eval"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func write(t testing.TB, name, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestThePublishedShapeIsRead(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "a.jsonl"), `{"question":"Read a","tools":[{"name":"read","description":"d","inputSchema":{"type":"object"},"server":"fs"},"write"],"target_tools":"read, write"}

{"uuid":"u","category":"x","question":[{"role":"system","content":"s"},{"role":"user","content":"Q"}],"tools":"[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{}}}]","target_tools":["f"]}
{"id":7,"question":"none","tools":null,"target_tools":""}
`)
	got, err := Read("jsonl:"+path, Options{})
	if err != nil || len(got) != 3 {
		t.Fatal(got, err)
	}
	one, two, three := got[0], got[1], got[2]
	if one.ID != "1" || len(one.Tools) != 2 || one.Tools[0].Server != "fs" || string(one.Tools[0].Schema) != `{"type":"object"}` || !slices.Equal(one.Expected, []string{"read", "write"}) {
		t.Errorf("%+v", one)
	}
	if two.ID != "u" || two.Question != "Q" || len(two.Messages) == 0 || two.Tools[0].Name != "f" || two.Category != "x" {
		t.Errorf("%+v", two)
	}
	if three.ID != "7" || len(three.Expected) != 0 || three.Expected == nil {
		t.Errorf("%+v", three)
	}
	if got, err := Read("jsonl:"+path, Options{Limit: 1}); err != nil || len(got) != 1 {
		t.Error(got, err)
	}
}

func TestByteOrderMarkIsSkipped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "questions.jsonl")
	if err := os.WriteFile(path, []byte("\xef\xbb\xbf"+`{"id":"a","question":"q","target_tools":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Read("jsonl:"+path, Options{}); err != nil || len(got) != 1 || got[0].ID != "a" {
		t.Error(got, err)
	}
}

func TestErrorsContainLineAndColumn(t *testing.T) {
	good := `{"id":"a","question":"q","target_tools":"x"}` + "\n"
	task := `{"uuid":"u","query":"q","function_call_label":[]}`
	for _, c := range []struct {
		format, text string
		line, column int
		says         string
	}{
		{"jsonl", good + "{\"id\":\"ä\", x}\n", 2, 12, "invalid character 'x'"},
		{"jsonl", good + good, 2, 1, `the id "a" is also that of`},
		{"jsonl", "\n" + `{"question":"q"}`, 2, 1, "target_tools: it is missing"},
		{"jsonl", `{"target_tools":"x"}`, 1, 1, "question is missing"},
		{"jsonl", `{"question":"q","target_tools":"x","tools":[{}]}`, 1, 1, "a tool has no name"},
		{"jsonl", `{"question":"q","target_tools":3}`, 1, 1, "neither a text nor a list"},
		{"jsonl", `{"category":3}`, 1, 13, `the member category has a value of a wrong type: number`},
		{"mcptoolbench", "[" + task + ",\n  " + strings.Replace(task, `"u"`, `""`, 1) + "]", 2, 3, "uuid is missing"},
		{"mcptoolbench", "[" + task + ",\n  " + task + "]", 2, 3, `the id "u" is also that of`},
		{"mcptoolbench", "[" + task + ",\n  " + task, 2, 51, "unexpected end"},
		{"mcptoolbench", `[{"uuid":"u"}]`, 1, 2, "no function_call_label"},
		{"mcptoolbench", `{}`, 1, 1, "it must be a JSON list, and is of the type object"},
		{"tau2", "[\n{}]", 2, 1, "id is missing"},
		{"tau2", "[\n{\"id\":1}]", 2, 1, "no evaluation_criteria"},
	} {
		path := write(t, filepath.Join(t.TempDir(), "data.json"), c.text)
		_, err := Read(c.format+":"+path, Options{})
		var at *Error
		if !errors.As(err, &at) || at.File != path || at.Line != c.line || at.Column != c.column || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %d:%d: %s", c.text, err, c.line, c.column, c.says)
		}
	}
	for _, data := range []string{"", "jsonl", "other:x", "jsonl:", "jsonl:" + t.TempDir() + "/none"} {
		if _, err := Read(data, Options{}); err == nil {
			t.Errorf("%q is read", data)
		}
	}
	if _, err := Read("jsonl:"+write(t, filepath.Join(t.TempDir(), "e"), "\n"), Options{}); err == nil {
		t.Error("no samples are no error")
	}
}

const browserTask = `[{"uuid":"1","category":"browser","tools":[{"name":"playwright_click","description":"","input_schema":{}},{"name":"puppeteer_click","description":"","input_schema":{}}],
"mcp_tools_dict":{"playwright":["playwright_click"],"puppeteer":["puppeteer_click"]},"query":"Click.",
"function_call_label":[{"name":"playwright_click","step":"1","id":"1","mcp_server":"playwright","similar_tools":[{"name":"puppeteer_click","mcp_server":"puppeteer"},"x"],"input":{"selector":"#a"},"output":{}}]}]`

func TestToolBenchIsRead(t *testing.T) {
	got, err := Read("mcptoolbench:"+write(t, filepath.Join(t.TempDir(), "b.json"), browserTask), Options{})
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	s := got[0]
	if s.Tools[1].Server != "puppeteer" || !slices.Equal(s.Expected, []string{"playwright_click"}) || string(s.Labels[0].Arguments) != `{"selector":"#a"}` || !slices.Equal(s.Labels[0].Similar, []string{"puppeteer_click", "x"}) {
		t.Errorf("%+v", s)
	}
}

func TestBFCLIsRead(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "BFCL_v4_parallel.json"), `{"id":"p_0","question":[[{"role":"user","content":"Q"}]],"function":[{"name":"f","description":"d","parameters":{"type":"dict","properties":{"type":{"type":"float"},"b":{"type":"tuple","items":{"type":"any"}}},"required":[]}}]}`)
	answers := write(t, filepath.Join(dir, "possible_answer", "BFCL_v4_parallel.json"), `{"id":"p_0","ground_truth":[{"f":{"type":[1]}},{"f":{"type":[2]}}]}`)
	write(t, filepath.Join(dir, "BFCL_v4_irrelevance.json"), `{"id":"i_0","question":[[{"role":"user","content":"Q"}]],"function":[{"name":"f"}]}`)
	write(t, filepath.Join(dir, "BFCL_v4_live_relevance.json"), `{"id":"r_0","question":[[{"role":"user","content":"Q"}]],"function":[{"name":"f"},{"name":"g"}]}`)
	got, err := Read("bfcl:"+dir, Options{Sets: []string{"parallel", "irrelevance", "live_relevance"}})
	if err != nil || len(got) != 3 {
		t.Fatal(got, err)
	}
	s := got[0]
	if s.Question != "Q" || !slices.Equal(s.Expected, []string{"f"}) || s.Check.Category != "parallel" || string(s.Tools[0].Schema) != `{"properties":{"b":{"items":{"type":"string"},"type":"array"},"type":{"type":"number"}},"required":[],"type":"object"}` {
		t.Errorf("%+v %s", s, s.Tools[0].Schema)
	}
	if len(got[1].Expected) != 0 || !got[2].AnyExpected || len(got[2].Expected) != 2 {
		t.Errorf("%+v", got[1:])
	}
	if _, err := Read("bfcl:"+dir, Options{Sets: []string{"memory"}}); err == nil || !strings.Contains(err.Error(), "the sets are") {
		t.Error(err)
	}
	write(t, answers, `{"id":"other","ground_truth":[]}`)
	if _, err := Read("bfcl:"+dir, Options{Sets: []string{"parallel"}}); err == nil || !strings.Contains(err.Error(), "p_0 has no possible answer") {
		t.Error(err)
	}
	if err := os.Remove(answers); err != nil {
		t.Fatal(err)
	}
	if _, err := Read("bfcl:"+dir, Options{Sets: []string{"parallel"}}); err == nil {
		t.Error("a set without its answers is read")
	}
}

func TestArgumentsOfJavaAreSourceText(t *testing.T) {
	got := jsonSchema([]byte(`{"type":"dict","properties":{"l":{"type":"ArrayList","items":{"type":"long"},"description":"D."},"a":{"type":"any"}},"required":["l"]}`), "Java")
	want := `{"properties":{"a":{"description":"Java source text of a value.","type":"string"},"l":{"description":"D. Java source text of a value of type ArrayList with elements of type long.","type":"string"}},"required":["l"],"type":"object"}`
	if string(got) != want {
		t.Errorf("%s", got)
	}
}

func TestTauIsRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "airline")
	write(t, filepath.Join(dir, "tasks.json"), `[{"id":"5","user_scenario":{"instructions":{"reason_for_call":"R","known_info":"K","task_instructions":"T"}},
		"evaluation_criteria":{"actions":[{"name":"get","arguments":{"a":1}},{"name":"get","arguments":{}},{"name":"own","requestor":"user"}]}},
		{"id":6,"user_scenario":{"instructions":"Text"},"evaluation_criteria":{"actions":null}}]`)
	got, err := Read("tau2:"+dir, Options{})
	if err != nil || len(got) != 2 {
		t.Fatal(got, err)
	}
	if s := got[0]; s.Category != "airline" || s.Question != "R\n\nK\n\nT" || !slices.Equal(s.Expected, []string{"get"}) || len(s.Labels) != 2 {
		t.Errorf("%+v", s)
	}
	if s := got[1]; s.ID != "6" || s.Question != "Text" || len(s.Expected) != 0 {
		t.Errorf("%+v", s)
	}
}

func quickTasksAreThoseOfEncodingJSON(t *testing.T, file *source) {
	t.Helper()
	items, err := file.list()
	if err != nil {
		return
	}
	for i := range items {
		var quick, slow toolBenchTask
		if !quick.quick(items[i].raw) {
			continue
		}
		if err := items[i].decode(&slow); err != nil || !reflect.DeepEqual(quick, slow) {
			t.Errorf("%s is %+v, and %+v with encoding/json (%v)", items[i].raw, quick, slow, err)
		}
	}
}

func FuzzDataSetIsReadOrErrorHasAPosition(f *testing.F) {
	f.Add(`{"question":"q","tools":["a"],"target_tools":"a"}` + "\n{")
	f.Add(`{"question":"q","labels":[{"name":"f"}]}` + "\n" + `{"id":"train-1","expected":["f"]}` + "\n" + `{"split":"test"}`)
	f.Add(browserTask)
	f.Add(`[{"id":"5","evaluation_criteria":{"actions":[{"name":"get"}]}}]`)
	f.Add(`{"id":"p","question":[[{"role":"user","content":"Q"}]],"function":[{"name":"f","parameters":{"type":"dict"}}],"ground_truth":[{"f":{}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		file := &source{"f", []byte(text)}
		quickTasksAreThoseOfEncodingJSON(t, file)
		for _, read := range []func() ([]eval.Sample, error){
			func() ([]eval.Sample, error) { return linesOf(file, Options{}) },
			func() ([]eval.Sample, error) { return tasksOf(file, Options{}) },
			func() ([]eval.Sample, error) { return toolBenchTasks(file, Options{}) },
			func() ([]eval.Sample, error) { return tauTasks(file, 0, unique{}) },
			func() ([]eval.Sample, error) { return bfclSet("parallel", file, file, 0) },
		} {
			samples, err := read()
			var at *Error
			if err != nil && (!errors.As(err, &at) || at.Line < 1 || at.Column < 1 || at.Line > 1+strings.Count(text, "\n")) {
				t.Errorf("%v", err)
			}
			seen := map[string]bool{}
			for _, s := range samples {
				if s.ID == "" || seen[s.ID] {
					t.Errorf("id %q", s.ID)
				}
				seen[s.ID] = true
			}
		}
	})
}

// TestALargeDataSetIsReadInOnePass has a file that takes minutes if something is computed from
// its beginning for each task.
func TestALargeDataSetIsReadInOnePass(t *testing.T) {
	const n = 100_000
	var text strings.Builder
	text.WriteString("[")
	for i := range n {
		if i > 0 {
			text.WriteString(",\n")
		}
		fmt.Fprintf(&text, `{"uuid":"t%d","category":"c","query":"q","function_call_label":[{"name":"f","mcp_server":"s","input":{"n":%d}}]}`, i, i)
	}
	text.WriteString("]")
	path := filepath.Join(t.TempDir(), "large.json")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	samples, err := Read("mcptoolbench:"+path, Options{})
	if err != nil || len(samples) != n {
		t.Fatalf("%d samples, %v", len(samples), err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestTasksHaveTheIDsOfTheirEpisodes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.jsonl")
	if err := os.WriteFile(path, []byte(`{"id":7,"question":"a"}`+"\n"+`{"id":"b","question":"b"}`+"\n"+`{"question":"c","split":"test"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	samples, err := Read("tasks:"+path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, s := range samples {
		ids = append(ids, s.ID)
	}
	if want := []string{"7", "b", "test-0"}; !slices.Equal(ids, want) {
		t.Errorf("%q", ids)
	}
}

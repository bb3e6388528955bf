package episode

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/kit/dirstate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func written(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "env.yaml")
}

func TestAnEnvironmentsFileIsReadWithItsDefaults(t *testing.T) {
	f, err := Load(written(t, map[string]string{
		"env.yaml": "environments:\n  notes:\n    tools: [todo/*]\n    tasks_file: tasks.jsonl\n    prompt: \"Do {{.question}}\"\n",
		"tasks.jsonl": `{"question":"a","labels":[{"name":"update"}],"answer":"x"}
{"question":"b","split":"test","id":"b1"}
`,
	}))
	if err != nil {
		t.Fatal(err)
	}
	e := f.Environments["notes"]
	if e.Isolation != IsolationSession || e.Confirm != ConfirmDeny || e.FinishTool != "finish" || e.Limits.Steps != 12 {
		t.Errorf("the defaults are %+v", e)
	}
	task, err := e.Task("train", -1)
	if err != nil || task.ID != "train-0" || len(task.Expected) != 1 || task.Expected[0] != "update" {
		t.Errorf("the task is %+v (%v)", task, err)
	}
	if shown := task.Public(); shown["labels"] != nil || shown["answer"] != nil || shown["question"] != "a" || shown["split"] != "train" {
		t.Errorf("a trainer sees %v", shown)
	}
	if text, err := e.promptOf(task); err != nil || text != "Do a" {
		t.Errorf("the prompt is %q (%v)", text, err)
	}
	if s := e.Splits(); len(s) != 2 || s[1].Type != "test" {
		t.Errorf("the splits are %v", s)
	}
}

func TestFaultsOfAnEnvironmentsFileAreNamedWithTheirPlace(t *testing.T) {
	for name, test := range map[string]struct{ yaml, tasks, want string }{
		"an unknown key":                        {"environments:\n  a:\n    tool: [x/*]\n", "", "env.yaml:3:5"},
		"an unknown isolation":                  {"environments:\n  a:\n    tools: [x/*]\n    isolation: none\n    tasks_file: t\n", "", "must be shared, session, process or sandbox"},
		"a reserved name":                       {"environments:\n  tasks:\n    tools: [x/*]\n    tasks_file: t\n", "", "cannot be the name"},
		"a pattern without a server":            {"environments:\n  a:\n    tools: [x]\n    tasks_file: t\n", "", "SERVER/TOOL"},
		"an unknown term":                       {"environments:\n  a:\n    tools: [x/*]\n    tasks_file: t\n    reward: {weights: {style: 1}}\n", "", "no term"},
		"a condition that is not a boolean":     {"environments:\n  a:\n    tools: [x/*]\n    tasks_file: t\n    success: steps + 1\n", "", "true or false"},
		"an unknown variable":                   {"environments:\n  a:\n    tools: [x/*]\n    tasks_file: t\n    success: step > 1\n", "", "column 1 of the condition"},
		"a weight for success without the term": {"environments:\n  a:\n    tools: [x/*]\n    tasks_file: t\n    reward: {weights: {success: 1}}\n", `{"question":"a"}`, "add success"},
		"a task that is not an object":          {"environments:\n  a:\n    tools: [x/*]\n    tasks_file: t\n", "{}\n[1]\n", "t:2: is not a JSON object"},
		"a label without a name":                {"environments:\n  a:\n    tools: [x/*]\n    tasks_file: t\n", `{"labels":[{"name":"x"},{"nme":"x"}]}`, "t:1: has a call without a name in labels (the call 2)"},
		"arguments that are not an object":      {"environments:\n  a:\n    tools: [x/*]\n    tasks_file: t\n", `{"labels":[{"name":"x","arguments":null},{"name":"x","arguments": "{}"}]}`, "no object (the call 2)"},
		"an empty expected name":                {"environments:\n  a:\n    tools: [x/*]\n    tasks_file: t\n", `{"expected":[""]}`, "empty name in expected"},
		"a negative max_risk":                   {"environments:\n  a:\n    tools: [x/*]\n    tasks_file: t\n", `{"max_risk":-1}`, "negative max_risk"},
		"no state directory":                    {"environments:\n  a:\n    tools: [x/*]\n    tasks_file: t\n    isolation: process\n    state: {dir: nowhere}\n", "{}", "env.yaml:6:18: environments.a.state.dir: "},
		"a file as a directory":                 {"environments:\n  a:\n    tools: [x/*]\n    tasks_file: t\n    isolation: process\n    state: {dir: t}\n", "{}", "is no directory"},
		"a prompt without its member":           {"environments:\n  a:\n    tools: [x/*]\n    tasks_file: t\n    prompt: 'Do {{.question}}'\n", "{\"question\":\"q\"}\n{\"qestion\":\"q\"}\n", `env.yaml:5:13: environments.a.prompt: uses a member that the task "train-1" does not have`},
		"a prompt that cannot be made":          {"environments:\n  a:\n    tools: [x/*]\n    tasks_file: t\n    prompt: '{{.question.text}}'\n", `{"question":"q"}`, `env.yaml:5:13: environments.a.prompt: The prompt of the task "train-0" cannot be made`},
		"a member of a wrong type":              {"environments:\n  a:\n    tools: [x/*]\n    tasks_file: t\n", `{"split":1}`, "t:1: is not a task: the member split has a value of a wrong type: number"},
		"an id of a wrong type":                 {"environments:\n  a:\n    tools: [x/*]\n    tasks_file: t\n", `{"id":[1]}`, "t:1: has an id that is neither a text nor a number"},
		"a duplicate id":                        {"environments:\n  a:\n    tools: [x/*]\n    tasks_file: t\n", "{\"id\":\"x\"}\n{\"id\":\"x\"}\n", "t:2: has the id"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(written(t, map[string]string{"env.yaml": test.yaml, "t": test.tasks}))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %s", err, test.want)
			}
		})
	}
}

func TestAPromptCanHaveOptionalMembers(t *testing.T) {
	f, err := Load(written(t, map[string]string{
		"env.yaml": "environments:\n  a:\n    tools: [x/*]\n    tasks_file: t\n    prompt: 'Do {{.question}}{{if .hint}} ({{.hint}}){{end}}'\n",
		"t":        "{\"question\":\"a\",\"hint\":\"b\"}\n{\"question\":\"print <no value>\"}\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"Do a (b)", "Do print <no value>"} {
		if task, err := f.Environments["a"].Task("train", i); err != nil {
			t.Error(err)
		} else if text, err := f.Environments["a"].promptOf(task); err != nil || text != want {
			t.Errorf("%q, %v", text, err)
		}
	}
}

func TestAConditionThatCannotBeDecidedDoesNotHold(t *testing.T) {
	for source, want := range map[string]bool{
		`results.exists(r, r.ok && r.text.contains("42"))`: true,
		`answer == "42"`:                 true,
		`task.missing == 1`:              false,
		`state == expected_state`:        true,
		`results.all(r, r.structured.x)`: false,
	} {
		c, err := compile(source)
		if err != nil {
			t.Fatal(err)
		}
		f := facts{results: []map[string]any{{"ok": true, "text": "is 42", "structured": map[string]any{}}}, answer: "42", task: map[string]any{"a": 1}}
		if got := c.holds(&f); got != want {
			t.Errorf("%s: %v", source, got)
		}
	}
}

func TestStateDigestCoversNamesModesAndContents(t *testing.T) {
	digest := func(edit func(dir string)) string {
		t.Helper()
		from, to := t.TempDir(), t.TempDir()
		if err := os.WriteFile(filepath.Join(from, "a"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := dirstate.Copy(from, to); err != nil {
			t.Fatal(err)
		}
		edit(to)
		sum, err := dirstate.Digest(to)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	same := digest(func(string) {})
	if digest(func(string) {}) != same {
		t.Error("two copies have different digests")
	}
	for name, edit := range map[string]func(dir string) error{
		"content": func(dir string) error { return os.WriteFile(filepath.Join(dir, "a"), []byte("y"), 0o600) },
		"name":    func(dir string) error { return os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "b")) },
		"mode":    func(dir string) error { return os.Chmod(filepath.Join(dir, "a"), 0o700) },
		"link":    func(dir string) error { return os.Symlink("a", filepath.Join(dir, "l")) },
	} {
		if digest(func(dir string) {
			if err := edit(dir); err != nil {
				t.Fatal(err)
			}
		}) == same {
			t.Errorf("another %s has the same digest", name)
		}
	}
}

func FuzzTasks(f *testing.F) {
	f.Add([]byte(`{"question":"a","labels":[{"name":"x","arguments":{"n":1e400}}]}`), "steps > 1")
	f.Fuzz(func(t *testing.T, text []byte, source string) {
		if tasks, err := parseTasks("t", text); err == nil && len(tasks.byID) == 0 {
			t.Error("there is neither a task nor a fault")
		}
		_, _ = compile(source) // must not panic
	})
}

func TestTheIDOfATaskMayBeANumber(t *testing.T) {
	tasks, err := parseTasks("t", []byte(`{"id":12345678901234567890}`+"\n"+`{"id":"7"}`+"\n"+`{"id":null}`))
	if err != nil || tasks.byID["12345678901234567890"] == nil || tasks.byID["7"] == nil || tasks.byID["train-2"] == nil {
		t.Errorf("%+v, %v", tasks, err)
	}
	if _, err := parseTasks("t", []byte(`{"id":7}`+"\n"+`{"id":"7"}`)); err == nil || !strings.Contains(err.Error(), `has the id "7" of an earlier task`) {
		t.Error(err)
	}
}

func TestByteOrderMarkBeforeTasksIsSkipped(t *testing.T) {
	tasks, err := parseTasks("t", []byte("\xef\xbb\xbf"+`{"id":"a","prompt":"p"}`))
	if err != nil || tasks.byID["a"] == nil {
		t.Errorf("%+v, %v", tasks, err)
	}
}

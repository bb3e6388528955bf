package cli

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
)

func TestAMistypedNameGetsASuggestion(t *testing.T) {
	plainEnvironment(t)
	noServer := problemAnswer(http.StatusNotFound, `{"title":"Not found","status":404,"detail":"There is no server \"dmo\".","retryable":false}`)
	noTool := problemAnswer(http.StatusNotFound, `{"title":"Not found","status":404,"detail":"Server \"demo\" has no tool \"ehco\".","retryable":false}`)
	tools := jsonAnswer(`{"tools":[{"server":"demo","name":"echo","enabled":true,"definition":{}},{"server":"demo","name":"add","enabled":true,"definition":{}}]}`)
	d := openDoor(t, map[string]answer{
		"GET /servers":                     jsonAnswer(`{"servers":[{"id":"demo"},{"id":"files"}]}`),
		"GET /tools?limit=500&server=demo": tools,
		"GET /tools?limit=500&server=dmo":  noServer,
		"GET /servers/dmo":                 noServer,
		"POST /servers/dmo/tools/echo":     noServer,
		"POST /servers/demo/tools/ehco":    noTool,
		"POST /servers/demo/tools/zzzz":    noTool,
	})
	for line, want := range map[string]string{
		"servres":               `callyard has no command "servres". Did you mean servers?`,
		"nonsense":              `callyard has no command "nonsense".`,
		"servers demo":          "callyard servers has no command \"demo\". To see one object, use `callyard servers show demo`.",
		"servers shwo demo":     `callyard servers has no command "shwo". Did you mean show?`,
		"keys nwe ci":           `callyard keys has no command "nwe". Did you mean new?`,
		"batches cancl b":       `callyard batches has no command "cancl". Did you mean cancel?`,
		"tools --serch x":       `callyard tools has no flag --serch. Did you mean --search?`,
		"servers --ouptut json": `callyard servers has no flag --ouptut. Did you mean --output?`,
		"servers --zzz":         `callyard servers has no flag --zzz.`,
		"servers show dmo":      "There is no server \"dmo\".\nDid you mean demo?",
		"tools dmo":             "There is no server \"dmo\".\nDid you mean demo?",
		"call dmo echo":         "There is no server \"dmo\".\nDid you mean demo?",
		"call demo ehco":        "has no tool \"ehco\".\nDid you mean echo?",
		"tools show demo ehco":  "lists its tools.\nDid you mean echo?",
		"call demo zzzz":        "has no tool \"ehco\".\n",
	} {
		args := strings.Fields(line)
		if !strings.Contains(line, "--zzz") {
			args = append(args, "--url", d.URL)
		}
		_, stderr, code := typed(t, "", args...)
		if code == exitOK || !strings.Contains(stderr, want) || !strings.Contains(want, "Did you mean") && strings.Contains(stderr, "Did you mean") {
			t.Errorf("%s: code %d, %s", line, code, stderr)
		}
	}
}

func TestSuggestionAddsNoOtherOutput(t *testing.T) {
	plainEnvironment(t)
	d := openDoor(t, nil) // also refuses the request for servers
	stdout, stderr, code := typed(t, "", "servers", "show", "dmo", "--json", "--url", d.URL)
	if code != exitRefused || strings.Count(stdout, "There is no such path.") != 2*1 && strings.Count(stdout, `"title"`) != 1 || strings.Contains(stderr, "Did you mean") {
		t.Errorf("code %d, %q, %s", code, stdout, stderr)
	}
}

// completed returns the completions that the shell is offered.
func completed(t *testing.T, args ...string) (offered, stderr string) {
	t.Helper()
	root := testRoot()
	var out, errOut bytes.Buffer
	root.SetArgs(append([]string{"__complete"}, args...))
	root.SetOut(&out)
	root.SetErr(&errOut)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String(), errOut.String()
}

func TestTheShellCompletesServersAndToolsFromTheFrontDoor(t *testing.T) {
	plainEnvironment(t)
	tools := `{"tools":[{"server":"demo","name":"echo","enabled":true,"definition":{"description":"Says it again.\nMore.","inputSchema":{"properties":{"message":{"description":"the text"}}}}},` +
		`{"server":"demo","name":"bad\u001b[31m","enabled":true,"definition":{}},{"server":"demo","name":"add","enabled":true,"definition":{}}]}`
	d := openDoor(t, map[string]answer{
		"GET /servers":                     jsonAnswer(`{"servers":[{"id":"demo","initialization_state":"initialized"},{"id":"files","initialization_state":"error"}]}`),
		"GET /tools?limit=500&server=demo": jsonAnswer(tools),
		"GET /tools?limit=500":             jsonAnswer(tools),
	})
	t.Setenv("CALLYARD_URL", d.URL)
	for line, want := range map[string]string{
		"call|":                        "demo\tready\nfiles\terror\n:4\n",
		"call|d":                       "demo\tready\n:4\n",
		"call|demo|":                   "echo\tSays it again.\nadd\n:4\n",
		"call|demo|echo|":              "message=\tthe text\n:6\n",
		"tools|show|demo|e":            "echo\tSays it again.\n:4\n",
		"calls|--server|f":             "files\terror\n:4\n",
		"calls|--tool|a":               "add\n:4\n",
		"calls|--server|demo|--tool|a": "add\n:4\n",
		"servers|--output|":            "json\nyaml\ntable\n:4\n",
		"servers|show|z|--json|":       ":4\n",
	} {
		if offered, _ := completed(t, strings.Split(line, "|")...); offered != want {
			t.Errorf("%s: %q, want %q", line, offered, want)
		}
	}
}

func TestCompletionIsSilentWithoutAFrontDoor(t *testing.T) {
	plainEnvironment(t)
	refusing := openDoor(t, nil)
	for _, address := range []string{"http://127.0.0.1:1", refusing.URL, "no address"} {
		for _, format := range []string{"table", "json", "yaml"} {
			if offered, _ := completed(t, "call", "--url", address, "--output", format, ""); offered != ":4\n" {
				t.Errorf("%s: %q", address, offered)
			}
		}
	}
}

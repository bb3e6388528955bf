package hub

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// settingsFor returns settings that open the server.
func settingsFor(t *testing.T, e Entry) Settings {
	t.Helper()
	var s Settings
	for _, need := range e.Needs {
		switch need {
		case settingRoots:
			s.Roots = []string{t.TempDir() + ":rw"}
		case settingEngine:
			s.Engine, s.EngineURL = "searxng", "http://127.0.0.1:1"
		default:
			t.Fatalf("%s needs %s, which this test does not know", e.Name, need)
		}
	}
	return s
}

func TestEveryListedServerOpensWithItsListedTools(t *testing.T) {
	list := List()
	if !slices.IsSortedFunc(list, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the list is not in alphabetical order")
	}
	for _, e := range list {
		server, closeServer, err := Open(e.Name, settingsFor(t, e))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range server.Tools() {
			names = append(names, tool.Name)
			var d struct {
				Title, Description string
				Annotations        map[string]bool
				InputSchema        struct {
					Properties map[string]struct{ Description string }
				}
			}
			if err := json.Unmarshal(tool.Definition, &d); err != nil {
				t.Fatal(err)
			}
			if d.Title == "" || len(d.Description) < 40 {
				t.Errorf("%s.%s has the title %q and the description %q", e.Name, tool.Name, d.Title, d.Description)
			}
			if _, ok := d.Annotations["openWorldHint"]; !ok {
				t.Errorf("%s.%s does not say whether it reaches systems outside", e.Name, tool.Name)
			}
			if _, ok := d.Annotations["destructiveHint"]; !ok && !d.Annotations["readOnlyHint"] {
				t.Errorf("%s.%s is not read only and does not say whether it is destructive", e.Name, tool.Name)
			}
			for name, p := range d.InputSchema.Properties {
				if p.Description == "" {
					t.Errorf("%s.%s does not describe %s", e.Name, tool.Name, name)
				}
			}
		}
		if !slices.Equal(names, e.Tools) {
			t.Errorf("%s has the tools %v and names %v", e.Name, names, e.Tools)
		}
		if e.Safe && len(e.Needs) > 0 {
			t.Errorf("%s is safe and needs %v", e.Name, e.Needs)
		}
		closeServer()
	}
}

func TestMissingOrForeignSettingsAreReported(t *testing.T) {
	for _, e := range List() {
		if len(e.Needs) == 0 {
			continue
		}
		_, _, err := Open(e.Name, Settings{})
		if err == nil || !strings.Contains(err.Error(), "needs the setting "+e.Needs[0]) {
			t.Errorf("%s: %v", e.Name, err)
		}
	}
	for setting, s := range map[string]Settings{
		"roots": {Roots: []string{"/"}}, "allow": {Allow: []string{"x"}}, "engine": {Engine: "x"}, "engine_url": {EngineURL: "x"}, "api_key": {APIKey: "x"},
	} {
		if _, _, err := Open("calculator", s); err == nil || !strings.Contains(err.Error(), "no setting "+setting+"; remove it") {
			t.Errorf("%s: %v", setting, err)
		}
	}
	if _, _, err := Open("bash", Settings{}); err == nil || !strings.Contains(err.Error(), "use one of calculator") {
		t.Error(err)
	}
}

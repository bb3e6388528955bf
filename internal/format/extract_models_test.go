package format

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// modelTexts are texts of models, as their chat templates write calls, each with the
// calls that are in it. Those of testdata/models/template-* were written by the templates
// themselves: models/templates of llama.cpp in llama_cpp_python 0.3.36 (PyPI), rendered with
// jinja2 3.1.6 for the same two calls; the name of a file is that of its template.
func modelTexts(t testing.TB) map[string][2]string {
	t.Helper()
	files, err := filepath.Glob("testdata/models/*.txt")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	all := make(map[string][2]string)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text, want, ok := strings.Cut(string(raw), "\n=== \n")
		if !ok {
			t.Fatalf("%s has no line of ===", file)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".txt")] = [2]string{text, want}
	}
	return all
}

func TestTheFormsOfOpenModelsAreRead(t *testing.T) {
	for name, c := range modelTexts(t) {
		var got strings.Builder
		for _, f := range Extract(c[0], known) {
			if f.Err != nil {
				t.Errorf("%s: %v", name, f.Err)
			}
			got.WriteByte('{')
			if f.ID != "" {
				got.WriteString(`"id":` + strconv.Quote(f.ID) + `,`)
			}
			got.WriteString(`"name":` + strconv.Quote(f.Name) + `,"arguments":` + string(f.Arguments) + "}\n")
		}
		if diff := cmp.Diff(c[1], got.String()); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

func TestCallsOfOpenModelsThatAreCutOffAreNotRun(t *testing.T) {
	for _, text := range []string{
		`[TOOL_CALLS]files__read[ARGS]{"path":"/a`,
		`[TOOL_CALLS]files__read[ARGS]`,
		"<tool_call>files__read\n<arg_key>path</arg_key>\n<arg_value>/a</arg_value>\n<arg_key>co",
		`<|tool_call_begin|>functions.files__read:0<|tool_call_argument_begin|>{"path":"/a`,
		`<|tool_call_begin|>functions.files__re`,
		`<|channel|>commentary to=functions.files__read <|constrain|>json<|message|>{"path":"/`,
		`<start_function_call>call:files__read{path:<escape>/a`,
		`<start_function_call>call:files__read{path:<escape>/a<escape>,count:`,
		`<start_function_call>call:files__read{count:2`,
	} {
		found := Extract(text, known)
		if len(found) != 1 || found[0].Err == nil || !strings.Contains(found[0].Err.Detail, "truncated") {
			t.Errorf("%s: %+v", text, found)
		}
	}
}

func TestMoreCallsThanAreTakenAreCounted(t *testing.T) {
	for form, one := range map[string]string{
		"tags":          `<tool_call>{"name":"web__get","arguments":{}}</tool_call>`,
		"mistral":       `[TOOL_CALLS]web__get[ARGS]{}`,
		"functiongemma": `<start_function_call>call:web__get{}<end_function_call>`,
	} {
		if n := len(Extract(strings.Repeat(one, MaxCalls), known)); n != MaxCalls {
			t.Errorf("%s: %d found of %d", form, n, MaxCalls)
		}
		if n := len(Extract(strings.Repeat(one, 3*MaxCalls), known)); n <= MaxCalls {
			t.Errorf("%s: %d found, and nobody knows that there are more", form, n)
		}
	}
}

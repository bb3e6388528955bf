package housetest

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the generated tables of docs")

// TestThePageOfTheRESTAPIListsEveryOperation compares the list of operations with the OpenAPI
// document. A test of the front door compares that document with the front door.
func TestThePageOfTheRESTAPIListsEveryOperation(t *testing.T) {
	const name = moduleRoot + "/docs/reference/rest.md"
	type operation struct {
		ID        string         `json:"operationId"`
		Tags      []string       `json:"tags"`
		Summary   string         `json:"summary"`
		Responses map[string]any `json:"responses"`
	}
	var document struct {
		Paths map[string]map[string]operation `json:"paths"`
	}
	raw, err := os.ReadFile(moduleRoot + "/clients/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for path, methods := range document.Paths {
		for method, o := range methods {
			var codes []string
			for _, code := range slices.Sorted(maps.Keys(o.Responses)) {
				if code != "default" {
					codes = append(codes, code)
				}
			}
			tag := strings.Join(o.Tags, ", ")
			rows[tag] = append(rows[tag], fmt.Sprintf("| `%s %s` | %s | `%s` | %s |\n", strings.ToUpper(method), path, o.Summary, o.ID, strings.Join(codes, " ")))
		}
	}
	var b strings.Builder
	for _, tag := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(&b, "\n## %s\n\n| request | does | operation | statuses |\n|---|---|---|---|\n", tag)
		slices.SortFunc(rows[tag], func(a, b string) int { return strings.Compare(pathOf(a), pathOf(b)) })
		b.WriteString(strings.Join(rows[tag], ""))
	}
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- operations -->\n", "<!-- end of operations -->\n"
	before, rest, found := strings.Cut(string(page), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no lines %q and %q", name, begin, end)
	}
	want := before + begin + b.String() + "\n" + end + after
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(page), want); diff != "" {
		t.Errorf("the list of operations differs from clients/openapi.json; to update it, run go test ./internal/housetest -run PageOfTheREST -update (-page +document):\n%s", diff)
	}
}

// pathOf returns the path of a row followed by its method.
func pathOf(row string) string {
	method, path, _ := strings.Cut(strings.TrimPrefix(row, "| `"), " ")
	path, _, _ = strings.Cut(path, "`")
	return path + " " + method
}

package problem_test

import (
	"flag"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/problem"
)

var update = flag.Bool("update", false, "write the table of docs/reference/errors.md")

const errorsPage = "../../docs/reference/errors.md"

// The table of the page is generated, except for the columns that say whether the call may have run and
// whether to retry. They depend on more than the kind and are kept from the page.
func TestErrorsPageListsEveryKind(t *testing.T) {
	raw, err := os.ReadFile(errorsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(raw), "<!-- kinds -->\n")
	if !found {
		t.Fatalf("%s has no line <!-- kinds -->", errorsPage)
	}
	kept := map[string][]string{}
	for strings.HasPrefix(rest, "|") {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if _, kind, ok := strings.Cut(cells[0], "`"); ok && len(cells) == 6 {
			kept[strings.Trim(kind, "`")] = cells[2:4]
		}
	}
	var b strings.Builder
	b.WriteString("| kind | status | may it have run? | send it again? | cause | fix |\n|---|---|---|---|---|---|\n")
	for _, r := range problem.Rows() {
		kind := string(r.Kind)
		cells := kept[kind]
		if len(cells) != 2 || cells[0] == "" || cells[1] == "" {
			t.Errorf("%s: write into %s whether a call with this problem may have run and whether to send it again; -update makes the row", kind, errorsPage)
			cells = []string{"", ""}
		}
		delete(kept, kind)
		status := strconv.Itoa(r.Status)
		if text := http.StatusText(r.Status); text != "" {
			status += " " + text
		}
		b.WriteString(`| <a id="` + kind + "\"></a>`" + kind + "` | " + strings.Join([]string{status, cells[0], cells[1], r.Title + ". " + r.Meaning, r.Fix}, " | ") + " |\n")
	}
	for kind := range kept {
		t.Errorf("%s has a row for %s, which is no kind", errorsPage, kind)
	}
	want := before + "<!-- kinds -->\n" + b.String() + rest
	if *update {
		if err := os.WriteFile(errorsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(raw), want); diff != "" {
		t.Errorf("the table is not that of the code: go test ./internal/problem -update (-page +code):\n%s", diff)
	}
}

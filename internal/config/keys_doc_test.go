package config_test

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/settings"
)

const page = "../../docs/reference/configuration.md"

// A marker says which keys the table below it has: those below these prefixes that no
// longer prefix of another marker takes.
var marker = regexp.MustCompile(`^<!-- keys:((?: [\w.]+)+) -->$`)

// The tables of keys are generated: keys, variables and defaults from the code, the
// meaning from the row that is there.
func TestThePageOfTheConfigurationListsEveryKey(t *testing.T) {
	file := settings.Defaults()
	keys, err := config.Keys(&file)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(raw), "\n")
	var prefixes []string
	for _, line := range lines {
		if m := marker.FindStringSubmatch(line); m != nil {
			prefixes = append(prefixes, strings.Fields(m[1])...)
		}
	}
	home := func(path string) (prefix string) {
		for _, p := range prefixes {
			if (path == p || strings.HasPrefix(path, p+".")) && len(p) > len(prefix) {
				prefix = p
			}
		}
		return prefix
	}
	var out []string
	for i := 0; i < len(lines); i++ {
		out = append(out, lines[i])
		m := marker.FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		meanings := map[string]string{}
		for ; i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|"); i++ {
			cells := strings.SplitN(strings.Trim(lines[i+1], "| "), " | ", 4)
			meaning := ""
			if len(cells) == 4 {
				meaning = cells[3]
			}
			meanings[strings.Trim(cells[0], "`")] = meaning
		}
		out = append(out, "| key | variable | default | meaning |", "|---|---|---|---|")
		for _, k := range keys {
			if !slices.Contains(strings.Fields(m[1]), home(k.Path)) {
				continue
			}
			meaning := meanings[k.Path]
			if meaning == "" {
				t.Errorf("%s has no meaning in %s: run the test with -update and write it into the last cell", k.Path, page)
			}
			out = append(out, "| `"+k.Path+"` | `"+k.Variable+"` | "+k.Default+" | "+meaning+" |")
			delete(meanings, k.Path)
		}
		for key := range meanings {
			if key != "key" && !strings.HasPrefix(key, "---") {
				t.Errorf("%s has a row for %s, which is not a key", page, key)
			}
		}
	}
	for _, k := range keys {
		if home(k.Path) == "" {
			t.Errorf("%s is in no table of %s", k.Path, page)
		}
	}
	got := strings.Join(out, "\n")
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(raw), got); diff != "" {
		t.Errorf("the tables are not those of the code; run the test with -update (-page +code):\n%s", diff)
	}
}

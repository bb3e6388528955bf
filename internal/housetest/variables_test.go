package housetest

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// reads matches environment variables that code reads by name: arguments of Getenv and LookupEnv, names
// that start with CALLYARD_, and keys of model providers.
var reads = regexp.MustCompile(`(?:Getenv|LookupEnv)\("([A-Z][A-Z0-9_]*)"\)|"(CALLYARD_[A-Z0-9_]*[A-Z0-9])"|"([A-Z]+_API_KEY)"`)

// readVariables returns the environment variables that the programs read, ignoring tests and packages
// that only tests link.
func readVariables(tree fs.FS) (map[string]string, error) {
	found := map[string]string{}
	for _, root := range []string{"cmd", "internal", "pkg"} {
		sub, err := fs.Sub(tree, root)
		if err != nil {
			return nil, err
		}
		forTests := func(name string) bool { return path.Base(name) == "testdata" || strings.HasSuffix(name, "test") }
		err = eachGoFile(sub, forTests, func(name string, source []byte) error {
			if strings.HasSuffix(name, "_test.go") {
				return nil
			}
			for _, m := range reads.FindAllStringSubmatch(string(source), -1) {
				found[strings.Join(m[1:], "")] = path.Join(root, name)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// TestEveryEnvironmentVariableIsInTheReference compares the variables that are not keys of the
// configuration file with the table in the reference, in both directions.
func TestEveryEnvironmentVariableIsInTheReference(t *testing.T) {
	const page = "docs/reference/configuration.md"
	raw, err := os.ReadFile(path.Join(moduleRoot, page))
	if err != nil {
		t.Fatal(err)
	}
	before, table, found := strings.Cut(string(raw), "<!-- variables -->\n")
	table, after, _ := strings.Cut(table, "\n\n")
	if !found {
		t.Fatalf("%s has no table of variables", page)
	}
	var listed []string
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		for _, name := range codeSpan.FindAllString(cells[1], -1) {
			listed = append(listed, strings.Trim(name, "`"))
		}
	}
	read, err := readVariables(os.DirFS(moduleRoot))
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range read {
		key := strings.TrimSuffix(name, "_FILE") // each key of the configuration also has such a variable
		if !slices.Contains(listed, name) && !strings.Contains(before+after, "| `"+key+"` |") {
			t.Errorf("%s reads %s, which is not in the table of variables in %s", file, name, page)
		}
	}
	for _, name := range listed {
		if read[name] == "" && name != "PORT" { // PORT is read with the whole environment
			t.Errorf("%s lists %s, which no program reads", page, name)
		}
	}
	if len(read) < 20 {
		t.Errorf("found only %d variables", len(read))
	}
}

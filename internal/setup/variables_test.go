package setup

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// A shell that sets a variable for one command must not break the others.
func TestVariablesOfClientCommandsAreNoFaults(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "<!-- variables -->\n")
	table, _, _ = strings.Cut(table, "\n\n")
	names := regexp.MustCompile("`(CALLYARD_[A-Z_]+)`").FindAllStringSubmatch(table, -1)
	if len(names) < 5 {
		t.Fatalf("the table has only the variables %v", names)
	}
	for _, name := range names {
		switch name[1] {
		case "CALLYARD_CONFIG", "CALLYARD_CLOCK", "CALLYARD_SEED": // a file, and variables that are set for the servers of an episode
		default:
			t.Setenv(name[1], "x")
		}
	}
	if _, err := Load(pflag.NewFlagSet("test", pflag.ContinueOnError)); err != nil {
		t.Error(err)
	}
}

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// clientSuiteWithin limits the client scenarios, which run concurrently.
const clientSuiteWithin = 2 * time.Minute

var (
	clientScenario = regexp.MustCompile(`(?m)^\s*- (?:scenario: )?(auth/[a-z0-9-]+)$`)
	clientLine     = regexp.MustCompile(`(?m)^([✓✗]) (auth/\S+): (\d+) passed, (\d+) failed`)
)

// extensions are OAuth extensions that the suite does not score but that work nevertheless.
var extensions = []string{"auth/client-credentials-basic", "auth/client-credentials-jwt"}

func TestOAuthClientPassesConformanceSuite(t *testing.T) {
	t.Parallel()
	folder := installedPath(t, "tools", "mcp-npm", "node_modules", "@modelcontextprotocol", "conformance")
	text, err := os.ReadFile(filepath.Join(folder, "requirements", modern+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	scored, _, _ := strings.Cut(string(text), "\nnot_scored:")
	wanted := append([]string{}, extensions...)
	for _, m := range clientScenario.FindAllStringSubmatch(scored, -1) {
		wanted = append(wanted, m[1])
	}
	if len(wanted) != 25+len(extensions) {
		t.Errorf("the suite has %d scored auth scenarios, not 25", len(wanted)-len(extensions))
	}
	into := t.TempDir()
	ran := newNode(t, clientSuiteWithin, into, filepath.Join(folder, "dist", "index.js"),
		"client", "--command", filepath.Join(programs.test, "oauth-client"), "--requirements", modern, "-o", into)
	found := make(map[string]string)
	for _, line := range clientLine.FindAllStringSubmatch(ran.out, -1) {
		if line[1] != "✓" || line[3] == "0" || line[4] != "0" {
			found[line[2]] = line[0]
			continue
		}
		found[line[2]] = ""
	}
	for _, name := range wanted {
		if fault, ran := found[name]; !ran || fault != "" {
			t.Errorf("%s: ran %v %s\n%s", name, ran, fault, failedChecks(into, name))
		}
	}
	if t.Failed() {
		t.Logf("%s", ran.errors)
	}
}

// failedChecks lists the failing checks of a scenario.
func failedChecks(folder, scenario string) string {
	files, _ := filepath.Glob(filepath.Join(folder, scenario+"-*", "checks.json"))
	var list strings.Builder
	for _, file := range files {
		var checks []struct {
			ID          string `json:"id"`
			Status      string `json:"status"`
			Description string `json:"description"`
		}
		text, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(text, &checks) != nil {
			continue
		}
		for _, c := range checks {
			if c.Status == "FAILURE" {
				list.WriteString(c.ID + ": " + c.Description + "\n")
			}
		}
	}
	return list.String()
}

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// nothing stands for the checks of a scenario that has none.
const nothing = "(nothing)"

// suiteWithin limits a run of the whole suite, and scenarioWithin one scenario.
const (
	suiteWithin    = 10 * time.Minute
	scenarioWithin = 2 * time.Minute
)

var (
	suiteLine   = regexp.MustCompile(`(?m)^[✓✗] (\S+): \d+ passed, \d+ failed\s*$`)
	suiteFolder = regexp.MustCompile(`^server-(.+)-\d{4}-\d{2}-\d{2}T[0-9A-Za-z-]+$`)
)

// findings maps each scenario that ran to its failing checks and their messages.
type findings map[string]map[string]string

// suite runs the conformance suite, with all requirements of a revision or with
// one scenario, and returns the findings.
func suite(t *testing.T, url, revision, scenario string) findings {
	t.Helper()
	into := t.TempDir()
	script := installedPath(t, "tools", "mcp-npm", "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	args := []string{"server", "--url", url, "-o", into, "--timeout", fmt.Sprint(scenarioWithin.Milliseconds())}
	if scenario == "" {
		args = append(args, "--requirements", revision)
	} else {
		args = append(args, "--scenario", scenario, "--spec-version", revision, "--force")
	}
	ran := newNode(t, suiteWithin, into, script, args...)
	found := make(findings)
	if scenario != "" {
		found[scenario] = make(map[string]string)
	}
	for _, line := range suiteLine.FindAllStringSubmatch(ran.out, -1) {
		found[line[1]] = make(map[string]string)
	}
	if len(found) == 0 {
		t.Fatalf("the suite ran nothing, code %d\n%s%s", ran.code, ran.out, ran.errors)
	}
	passed := make(map[string]bool)
	folders, err := os.ReadDir(into)
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		name := suiteFolder.FindStringSubmatch(folder.Name())
		if name == nil || found[name[1]] == nil {
			t.Fatalf("a result that nobody asked for: %s", folder.Name())
		}
		var checks []struct {
			ID      string `json:"id"`
			Status  string `json:"status"`
			Message string `json:"errorMessage"`
		}
		text, err := os.ReadFile(filepath.Join(into, folder.Name(), "checks.json"))
		if err != nil {
			t.Fatal(err)
		}
		decode(t, text, &checks)
		for _, c := range checks {
			switch c.Status {
			case "SUCCESS":
				passed[name[1]] = true
			case "FAILURE":
				found[name[1]][c.ID] = c.Message
			}
		}
	}
	for scenario, failed := range found {
		if len(failed) == 0 && !passed[scenario] {
			failed[nothing] = "no check passed, and none failed"
		}
	}
	return found
}

// expectedFailures reads the list, with "REVISION SCENARIO CHECK: reason" on each line.
func expectedFailures(t *testing.T) map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "conformance.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	expected := make(map[string]string)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		check, reason, ok := strings.Cut(line, ": ")
		if !ok || len(strings.Fields(check)) != 3 || expected[check] != "" {
			t.Fatalf("testdata/conformance.txt: not REVISION SCENARIO CHECK: REASON, or a second time: %s", line)
		}
		expected[check] = reason
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return expected
}

// compare compares the findings with the list, for the scenarios that ran.
func (found findings) compare(t *testing.T, revision string) {
	t.Helper()
	expected := expectedFailures(t)
	for scenario, failed := range found {
		for check, message := range failed {
			key := revision + " " + scenario + " " + check
			if expected[key] == "" {
				t.Errorf("it fails, and testdata/conformance.txt does not expect that: %s: %s", key, message)
				continue
			}
			t.Logf("it fails as expected: %s: %s", key, message)
		}
	}
	for key := range expected {
		part := strings.Fields(key)
		failed, ran := found[part[1]]
		if _, fails := failed[part[2]]; part[0] == revision && ran && !fails {
			t.Errorf("it passes now: take it out of testdata/conformance.txt: %s", key)
		}
	}
}

// tasksScenarios need tools that go-sdk's everything-server does not have, so
// they have a separate server.
var tasksScenarios = []string{
	"tasks-capability-negotiation", "tasks-dispatch-and-envelope", "tasks-lifecycle", "tasks-mrtr-composition", "tasks-mrtr-input", "tasks-request-headers",
	"tasks-request-state-removal", "tasks-required-task-error", "tasks-status-notifications", "tasks-wire-fields",
}

func TestConformanceSuiteFindsOnlyKnownFaults(t *testing.T) {
	t.Parallel()
	servers := map[string]entry{"conformance": {Command: filepath.Join(programs.test, "everything-server"), Asks: true}}
	up := startUp(t, setup{servers: serversFile(t, servers), env: []string{quickStop}})
	up.waitServers(t, 1, keys(servers)...)
	for _, revision := range []string{modern, legacy} {
		t.Run(revision, func(t *testing.T) {
			found := suite(t, up.url+"/mcp/conformance", revision, "")
			for _, scenario := range tasksScenarios {
				delete(found, scenario)
			}
			if len(found) < 30 {
				t.Errorf("only %d scenarios ran: %v", len(found), keys(found))
			}
			found.compare(t, revision)
		})
	}
}

func TestTasksPassConformanceSuite(t *testing.T) {
	t.Parallel()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, policy, holdTasks)
	servers := map[string]entry{"tasks": tasksServer()}
	up := startUp(t, setup{servers: serversFile(t, servers), flags: []string{"--policy", policy}, env: []string{quickStop}})
	up.waitServers(t, 1, keys(servers)...)
	for _, scenario := range tasksScenarios {
		t.Run(scenario, func(t *testing.T) {
			suite(t, up.url+"/mcp/tasks", modern, scenario).compare(t, modern)
		})
	}
}

func TestEveryExpectedFailureNamesAScenarioThatIsRun(t *testing.T) {
	requirements := installedPath(t, "tools", "mcp-npm", "node_modules", "@modelcontextprotocol", "conformance", "requirements")
	for key := range expectedFailures(t) {
		part := strings.Fields(key)
		text, err := os.ReadFile(filepath.Join(requirements, part[0]+".yaml"))
		if err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		scenario := regexp.MustCompile(`(?m)^\s*- (scenario: )?` + regexp.QuoteMeta(part[1]) + `$`)
		if !scenario.Match(text) && !slices.Contains(tasksScenarios, part[1]) {
			t.Errorf("%s: the suite has no such scenario", key)
		}
	}
}

// versionOf returns the version of an installed npm package.
func versionOf(t *testing.T, folder string) string {
	t.Helper()
	var about struct {
		Version string `json:"version"`
	}
	text, err := os.ReadFile(filepath.Join(folder, "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &about); err != nil {
		t.Fatal(err)
	}
	return about.Version
}

func TestDocsNameTheConformanceSuiteVersion(t *testing.T) {
	version := versionOf(t, installedPath(t, "tools", "mcp-npm", "node_modules", "@modelcontextprotocol", "conformance"))
	document, err := os.ReadFile(filepath.Join(programs.root, "docs", "reference", "mcp.md"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "`@modelcontextprotocol/conformance` " + version; !strings.Contains(string(document), want) {
		t.Errorf("docs/reference/mcp.md does not say %s", want)
	}
}

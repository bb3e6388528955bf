package housetest

import (
	"os"
	"slices"
	"testing"
	"testing/fstest"
)

// doubles are the internal packages that end-to-end tests may import: each simulates or damages
// something around Callyard, and none is part of a program.
var doubles = []struct{ root, reason string }{
	{"internal/mcptest", "it plays MCP servers, and reads the file in which they write each run"},
	{"internal/agent/modeltest", "it plays the APIs of models"},
	{"internal/approver/oidc/oidctest", "it plays an identity provider"},
	{"internal/approver/slack/slacktest", "it plays Slack"},
	{"internal/authn/token/tokentest", "it plays the issuer of tokens"},
	{"internal/confirm/confirmtest", "it starts a Redis server"},
	{"internal/embedded/disktest", "it makes a disk that can be full"},
	{"internal/launch/attach/attachtest", "it plays programs that attach"},
	{"internal/telemetry/tracetest", "it plays a receiver of traces"},
	{"internal/upstream/oauth/oauthtest", "it plays an authorization server"},
}

// insiders are the files of e2e that may import product code, with the reason. Nothing in e2e/chaos
// may be listed, because it must check the product's guarantees by what a user can see.
var insiders = []struct{ file, root, reason string }{
	{"e2e/bounds_linux_test.go", "internal/waits", "the number of requests that wait is a fixed bound, which no answer tells"},
	{"e2e/config_check_test.go", "internal/authn", "it writes a file of callers; the command would only print their keys"},
	{"e2e/harness_credentials_test.go", "internal/credential", "it connects hundreds of people, each of whom would need a browser at an approver"},
	{"e2e/harness_credentials_test.go", "internal/upstream/oauth", "it uses the client of the approver for these people"},
	{"e2e/mcp_sessions_test.go", "internal/authn", "it writes a file of callers; the command would only print their keys"},
	{"e2e/deploy/examples_test.go", "internal/config", "it reads the example files as the worker does, without starting one for each"},
	{"e2e/deploy/metrics_test.go", "internal/telemetry", "the names of metrics in dashboards and alerts must be those that are registered"},
	{"e2e/fabric", "internal/warrant", "it writes keys for a fleet, without a run of the command for each"},
	{"e2e/rolling/fabric_test.go", "internal/warrant", "it writes keys for a fleet, without a run of the command for each"},
	{"e2e/models", "internal/agent/model", "it tests the client of models itself against the servers of the vendors' libraries"},
	{"e2e/oauthclient", "internal", "the conformance suite must test the product's own client"},
	{"e2e/proc/sentinels.go", "internal/confirm", "it waits until a set of Redis servers is ready, as the product connects to them"},
}

const whyOutside = "end-to-end tests use Callyard as its users do, so that they do not depend on the implementation; if an import is needed, add it to doubles, or the file and the reason to insiders, in internal/housetest"

// fromOutside returns the imports of product code in e2e that no row permits.
func fromOutside(module string, units []*unit) []violation {
	h := treeCheck{module: module, units: units}
	for _, u := range units {
		if !within(u.dir, "e2e") {
			continue
		}
		for _, f := range u.files {
			for _, imp := range f.imports {
				dir, ours := h.own(imp.what)
				if !ours || !within(dir, "internal") || isDouble(dir) || mayRead(f.path, dir) {
					continue
				}
				h.report(at(f, imp), whyOutside, "%s imports %s", u.dir, dir)
			}
		}
	}
	return h.found
}

func isDouble(dir string) bool {
	return slices.ContainsFunc(doubles, func(d struct{ root, reason string }) bool { return d.root == dir })
}

func mayRead(file, dir string) bool {
	return slices.ContainsFunc(insiders, func(i struct{ file, root, reason string }) bool { return within(file, i.file) && within(dir, i.root) })
}

func TestEndToEndTestsImportNoProductCode(t *testing.T) {
	tree := os.DirFS(moduleRoot)
	units, err := load(tree)
	if err != nil {
		t.Fatal(err)
	}
	module := moduleName(t, tree)
	for _, v := range fromOutside(module, units) {
		t.Error(v)
	}
	imported := func(where, root string) bool {
		return slices.ContainsFunc(units, func(u *unit) bool {
			return within(u.dir, "e2e") && slices.ContainsFunc(u.files, func(f file) bool {
				return within(f.path, where) && slices.ContainsFunc(f.imports, func(r reference) bool { return within(r.what, module+"/"+root) })
			})
		})
	}
	for _, d := range doubles {
		if !imported("e2e", d.root) || d.reason == "" {
			t.Errorf("the row of %s in doubles is unused or has no reason", d.root)
		}
	}
	for _, i := range insiders {
		if !imported(i.file, i.root) || i.reason == "" {
			t.Errorf("the row of %s for %s in insiders is unused or has no reason", i.file, i.root)
		}
		if within(i.file, "e2e/chaos") {
			t.Errorf("%s is in insiders, but e2e/chaos must not import product code", i.file)
		}
	}
}

func TestImportOfProductCodeIsFound(t *testing.T) {
	units, err := load(fstest.MapFS{
		"e2e/chaos/judge.go":     {Data: []byte("package chaos\nimport (\n\t\"m/internal/batch\"\n\t\"m/internal/mcptest\"\n\t\"m/pkg/bus\"\n)\n")},
		"e2e/chaos/more_test.go": {Data: []byte("package chaos\nimport \"m/internal/store/journal\"\n")},
		"e2e/fabric/lay.go":      {Data: []byte("package fabric\nimport (\n\t\"m/internal/warrant\"\n\t\"m/internal/config\"\n)\n")},
		"internal/cli/cli.go":    {Data: []byte("package cli\nimport \"m/internal/batch\"\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, v := range fromOutside("m", units) {
		found = append(found, v.where)
	}
	slices.Sort(found)
	if want := []string{"e2e/chaos/judge.go:3", "e2e/chaos/more_test.go:2", "e2e/fabric/lay.go:4"}; !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
}

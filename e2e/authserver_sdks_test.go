package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus/porttest"
)

// loginReport is what a client saw, see e2e/clients-mcp/login.mjs.
type loginReport struct {
	Asked   []string `json:"asked"`
	Tools   []string `json:"tools"`
	Said    string   `json:"said"`
	Stuck   string   `json:"stuck"`
	Again   string   `json:"again"`
	Renewed bool     `json:"renewed"`
	Issued  int      `json:"issued"`
	Refused string   `json:"refused"`
	After   float64  `json:"refused_after_ms"`
}

// tokenExpires is how long clients wait for an access token to expire in the long variant: a
// minute, and the half that front doors add for clocks.
const tokenExpires = "95"

// loginWithin bounds one client.
const loginWithin = 3 * time.Minute

// login runs a client, and does for it what a person does: agree, and end the grants.
func (o *issuing) login(t *testing.T, program string, args ...string) *loginReport {
	t.Helper()
	if os.Getenv("CALLYARD_AUTHSERVER") == "full" {
		args = append(args, tokenExpires)
	}
	ctx, cancel := context.WithTimeout(t.Context(), loginWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.SysProcAttr, cmd.WaitDelay = clientScripts(t), endsWithUs(), 5*time.Second
	cmd.Env = append(cleanEnviron(), "HOME="+t.TempDir(), "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1", "NO_COLOR=1", "PYTHONDONTWRITEBYTECODE=1")
	var errs strings.Builder
	cmd.Stderr = &errs
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var last string
	for lines := bufio.NewScanner(out); lines.Scan(); last = lines.Text() {
		address, authorize := strings.CutPrefix(lines.Text(), "authorize ")
		switch {
		case authorize:
			o.page(t, o.person.Get, o.agree(t, address))
		case lines.Text() == "end":
			o.endGrants(t)
			if _, err := fmt.Fprintln(in); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the client: %v\n%s%s", err, last, errs.String())
	}
	var r loginReport
	if err := json.Unmarshal([]byte(last), &r); err != nil {
		t.Fatalf("%v: %s%s", err, last, errs.String())
	}
	return &r
}

func (o *issuing) endGrants(t *testing.T) {}

// check holds the report of a client against what it must see.
func (r *loginReport) check(t *testing.T) {
	t.Helper()
	t.Logf("%+v", r)
	if len(r.Asked) < 2 || r.Asked[0] != "tools:read" || !strings.Contains(r.Asked[1], "tools:call") {
		t.Errorf("it asked for %q", r.Asked)
	}
	if len(r.Tools) == 0 || r.Said != "hello" || r.Again != "hello" || !r.Renewed {
		t.Errorf("it saw %d tools, its calls said %q and %q, and its token was renewed: %t", len(r.Tools), r.Said, r.Again, r.Renewed)
	}
	if r.Refused == "" || r.Issued != len(r.Asked) {
		t.Errorf("after the end of the grants it was refused by %q", r.Refused)
	}
}

func TestTheTypeScriptSDKSignsInCallsStepsUpAndRefreshes(t *testing.T) {
	t.Parallel()
	brought(t, "e2e", "clients-mcp", "node_modules", "@modelcontextprotocol", "client")
	node := brought(t, "tools", "mcp-npm", "node_modules", ".bin", "node")
	o := openIssuing(t, "http://127.0.0.1/callback")
	for _, generation := range []string{"v1", "v2"} {
		t.Run(generation, func(t *testing.T) {
			o.login(t, node, "login.mjs", generation, o.url+"/mcp").check(t)
		})
	}
}

func TestThePythonSDKSignsInCallsStepsUpAndRefreshes(t *testing.T) {
	t.Parallel()
	o := openIssuing(t, "http://127.0.0.1/callback")
	o.login(t, brought(t, ".cache", "python-mcp", "bin", "python"), "login.py", o.url+"/mcp").check(t)
}

// inspectSignedIn runs the inspector's command line, and agrees where it asks. It returns what it
// printed, and the scopes for which it asked.
func (o *issuing) inspectSignedIn(t *testing.T, home string, args ...string) (out string, asked []string, code int) {
	t.Helper()
	node := brought(t, "tools", "mcp-npm", "node_modules", ".bin", "node")
	launcher := brought(t, "tools", "mcp-npm", "node_modules", "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js")
	browsers := t.TempDir()
	for _, name := range []string{"open", "xdg-open"} {
		if err := os.WriteFile(filepath.Join(browsers, name), []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), loginWithin)
	defer cancel()
	args = append([]string{launcher, "--cli", o.url + "/mcp", "--transport", "http", "--client-id", "app", "--callback-url", "http://" + porttest.Address(t) + "/callback", "--format", "json"}, args...)
	cmd := exec.CommandContext(ctx, node, args...)
	cmd.Dir, cmd.SysProcAttr, cmd.WaitDelay = t.TempDir(), endsWithUs(), 5*time.Second
	cmd.Env = append(cleanEnviron(), "HOME="+home, "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1", "NO_COLOR=1", "BROWSER=true", "MCP_AUTO_OPEN_ENABLED=true", "MCP_INSPECTOR_SECRET_STORE=file",
		"PATH="+browsers+string(os.PathListSeparator)+filepath.Dir(node)+string(os.PathListSeparator)+os.Getenv("PATH"))
	var printed strings.Builder
	cmd.Stdout = &printed
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(errs); lines.Scan(); {
		t.Log(lines.Text())
		if _, address, ok := strings.Cut(lines.Text(), "navigate to: "); ok {
			u, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			asked = append(asked, u.Query().Get("scope"))
			o.page(t, o.person.Get, o.agree(t, address))
		}
	}
	if err := cmd.Wait(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return printed.String(), asked, cmd.ProcessState.ExitCode()
}

func TestTheInspectorSignsIn(t *testing.T) {
	t.Parallel()
	o := openIssuing(t, "http://127.0.0.1/callback")
	home := t.TempDir()
	out, asked, code := o.inspectSignedIn(t, home, "--method", "tools/list")
	t.Log(out, asked, code)
	out, asked, code = o.inspectSignedIn(t, home, "--method", "tools/call", "--tool-name", "echo__echo", "--tool-arg", "text=hello")
	t.Log(out, asked, code)
	out, asked, code = o.inspectSignedIn(t, home, "--method", "tools/call", "--tool-name", "echo__echo", "--tool-arg", "text=hello", "--stored-auth-only")
	t.Log(out, asked, code)
	_ = exec.Command("cp", "-r", home, "/tmp/insp-home").Run()
}

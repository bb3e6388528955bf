package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus/porttest"
)

// loginReport is the report of a client, see e2e/clients-mcp/login.mjs.
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

// tokenExpires is the time in seconds that clients wait for an access token to expire in the long
// variant: a minute, and half a minute of clock tolerance of the front doors.
const tokenExpires = "95"

// tokensExpire reports whether access tokens are short-lived and clients wait until they expire.
func tokensExpire() bool { return os.Getenv("CALLYARD_AUTHSERVER") == "full" }

// loginWithin limits the time of one client.
const loginWithin = 3 * time.Minute

// login runs a client, and acts as its user: consents, and ends the grants.
func (o *issuing) login(t *testing.T, program string, args ...string) *loginReport {
	t.Helper()
	if tokensExpire() {
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

// endForm matches the form that ends one grant.
var endForm = regexp.MustCompile(`action="(/grants/[0-9a-f]{32}/end)"`)

// endGrants ends the grants of all programs on the page.
func (o *issuing) endGrants(t *testing.T) {
	t.Helper()
	browse := func(method, to string, form url.Values) string {
		return o.page(t, func(to string) (*http.Response, error) {
			r, err := http.NewRequestWithContext(t.Context(), method, to, strings.NewReader(form.Encode()))
			if err != nil {
				return nil, err
			}
			r.Header.Set("Accept", "text/html")
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			return o.person.Do(r)
		}, to)
	}
	for {
		page := browse(http.MethodGet, o.issuer+"/grants", nil)
		m := endForm.FindStringSubmatch(page)
		if m == nil {
			return
		}
		browse(http.MethodPost, o.issuer+m[1], fields(page, m[1]))
	}
}

// checkAudit checks that the audit record has each step of the access of programs, and no secret.
func (o *issuing) checkAudit(t *testing.T) {
	t.Helper()
	var told struct {
		Records []struct{ Kind, Outcome, Client, Person string }
	}
	var body []byte
	seen := map[string]int{}
	o.eventually(t, soon, "the audit record", func() error {
		clear(seen)
		a, err := o.try("GET", "/audit?limit=1000", "", "Authorization: Bearer "+o.key)
		if err != nil {
			return err
		}
		if body = a.body; json.Unmarshal(a.body, &told) != nil || a.status != http.StatusOK {
			return fmt.Errorf("%d %s", a.status, a.body)
		}
		for _, r := range told.Records {
			if strings.HasPrefix(r.Kind, "grant-") {
				seen[r.Kind]++
			}
		}
		if seen["grant-ended"] == 0 || seen["grant-given"] != seen["grant-ended"] {
			return fmt.Errorf("%v", seen)
		}
		return nil
	})
	if seen["grant-redeemed"] != seen["grant-given"] || seen["grant-renewed"] == 0 {
		t.Errorf("recorded are %v", seen)
	}
	if secret := regexp.MustCompile(`cyc_|cyr_|eyJ`).Find(body); secret != nil {
		t.Errorf("the record has a code or a token: %s", body)
	}
}

// check checks the report of a client.
func (r *loginReport) check(t *testing.T) {
	t.Helper()
	t.Logf("%+v", r)
	if len(r.Asked) != 3 || r.Asked[0] != "tools:read" || !strings.Contains(r.Asked[1], "tools:call") {
		t.Errorf("it asked for %q", r.Asked)
	}
	if len(r.Tools) == 0 || r.Said != "hello" || r.Again != "hello" || !r.Renewed {
		t.Errorf("it saw %d tools, its calls said %q and %q, and its token was renewed: %t", len(r.Tools), r.Said, r.Again, r.Renewed)
	}
	// It got tokens from two sign-ins, and from its refresh token.
	if r.Issued < 3 {
		t.Errorf("it got tokens %d times", r.Issued)
	}
	// The client tries for 20 s, which is less than the lifetime of its token.
	if r.Refused == "" {
		t.Errorf("after the end of its access it was not refused within %.0f ms", r.After)
	}
}

func TestTheTypeScriptSDKSignsInCallsStepsUpAndRefreshes(t *testing.T) {
	t.Parallel()
	installedPath(t, "e2e", "clients-mcp", "node_modules", "@modelcontextprotocol", "client")
	node := installedPath(t, "tools", "mcp-npm", "node_modules", ".bin", "node")
	o := openIssuing(t, "http://127.0.0.1/callback")
	for _, generation := range []string{"v1", "v2"} {
		t.Run(generation, func(t *testing.T) {
			o.login(t, node, "login.mjs", generation, o.url+"/mcp").check(t)
		})
	}
	o.checkAudit(t)
}

func TestThePythonSDKSignsInCallsStepsUpAndRefreshes(t *testing.T) {
	t.Parallel()
	o := openIssuing(t, "http://127.0.0.1/callback")
	o.login(t, installedPath(t, ".cache", "python-mcp", "bin", "python"), "login.py", o.url+"/mcp").check(t)
}

// inspector runs the command line of the inspector, signed in.
type inspector struct {
	*issuing
	home string // the folder of its tokens
}

// run runs one command. If it requires a sign-in, the user consents, to the given scopes only if
// there are any. It returns the output, the requested scopes, and the exit code.
func (i *inspector) run(t *testing.T, scopes string, args ...string) (out string, asked []string, code int) {
	t.Helper()
	node := installedPath(t, "tools", "mcp-npm", "node_modules", ".bin", "node")
	launcher := installedPath(t, "tools", "mcp-npm", "node_modules", "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js")
	browsers := t.TempDir() // the test is the browser
	for _, name := range []string{"open", "xdg-open"} {
		if err := os.WriteFile(filepath.Join(browsers, name), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), loginWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, append([]string{
		launcher, "--cli", i.url + "/mcp", "--transport", "http", "--client-id", "app", "--callback-url", "http://" + porttest.Address(t) + "/callback", "--format", "json",
	}, args...)...)
	cmd.Dir, cmd.SysProcAttr, cmd.WaitDelay = t.TempDir(), endsWithUs(), 5*time.Second
	cmd.Env = append(cleanEnviron(), "HOME="+i.home, "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1", "NO_COLOR=1", "BROWSER=true", "MCP_AUTO_OPEN_ENABLED=true", "MCP_INSPECTOR_SECRET_STORE=file",
		"PATH="+strings.Join([]string{browsers, filepath.Dir(node), os.Getenv("PATH")}, string(os.PathListSeparator)))
	cmd.Stdin = strings.NewReader("y\n") // confirms the request for more scopes
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
		_, address, authorize := strings.Cut(lines.Text(), "navigate to: ")
		if !authorize {
			continue
		}
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		asked = append(asked, q.Get("scope"))
		if scopes != "" {
			q.Set("scope", scopes)
			u.RawQuery = q.Encode()
		}
		i.page(t, i.person.Get, i.agree(t, u.String()))
	}
	if err := cmd.Wait(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return printed.String(), asked, cmd.ProcessState.ExitCode()
}

// accessToken matches the stored token of the inspector.
var accessToken = regexp.MustCompile(`\\"access_token\\":\\"([^"\\]+)\\"`)

// spoil replaces the access token of the inspector with an invalid one.
func (i *inspector) spoil(t *testing.T) (renewed func() bool) {
	t.Helper()
	file := filepath.Join(i.home, ".mcp-inspector", "secrets.json")
	read := func() (text, token string) {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := accessToken.FindSubmatch(raw)
		if m == nil {
			t.Fatal("the inspector keeps no access token")
		}
		return string(raw), string(m[1])
	}
	text, token := read()
	spoilt := token[:len(token)-8] + "AAAAAAAA"
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, token, spoilt)), 0o600); err != nil {
		t.Fatal(err)
	}
	return func() bool { _, now := read(); return now != token && now != spoilt }
}

func TestTheInspectorSignsInCallsStepsUpAndRefreshes(t *testing.T) {
	t.Parallel()
	i := &inspector{openIssuing(t, "http://127.0.0.1/callback"), t.TempDir()}
	call := []string{"--method", "tools/call", "--tool-name", "echo__echo", "--tool-arg", "text=hello"}
	out, asked, code := i.run(t, "tools:read", "--method", "tools/list")
	if code != 0 || len(asked) != 1 || !strings.Contains(out, `"echo__echo"`) {
		t.Fatalf("it signs in, code %d, asked for %q: %s", code, asked, out)
	}
	if out, asked, code = i.run(t, "", call...); code != 0 || len(asked) != 1 || !strings.Contains(asked[0], "tools:call") || !strings.Contains(out, `"hello"`) {
		t.Errorf("it steps up, code %d, asked for %q: %s", code, asked, out)
	}
	renewed := i.spoil(t)
	if out, asked, code = i.run(t, "", append(call, "--stored-auth-only")...); code != 0 || len(asked) != 0 || !strings.Contains(out, `"hello"`) || !renewed() {
		t.Errorf("it refreshes, code %d, asked for %q: %s", code, asked, out)
	}
	i.endGrants(t)
	eventually(t, soon, "the end of its access", func() error { // a front door follows within a second, if it does not stand still
		if out, _, code = i.run(t, "", append(call, "--stored-auth-only")...); code == 0 || strings.Contains(out, `"hello"`) {
			return fmt.Errorf("code %d: %s", code, out)
		}
		return nil
	})
}

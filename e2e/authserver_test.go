package e2e

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/callyard/callyard/pkg/bus/porttest"
)

// issuing is a front door and an approver with an authorization server, and a user.
type issuing struct {
	*door
	issuer string
	person *http.Client
	key    string // of the user at the approver, and of an operator at the front door
}

// openIssuing starts them. redirect is the registered redirect URI of the client "app".
func openIssuing(t *testing.T, redirect string) *issuing {
	t.Helper()
	listen, approver := porttest.Address(t), porttest.Address(t)
	made := runTool(t, soon, t.TempDir(), filepath.Join(bin(t), "callyard"), "keys", "new", "ada").out
	key, hash := regexp.MustCompile(`cyk_\w+`).FindString(made), regexp.MustCompile(`sha256:\w+`).FindString(made)
	raw := make([]byte, 32)
	_, _ = rand.Read(raw)
	sealing := filepath.Join(t.TempDir(), "credentials.key")
	if err := os.WriteFile(sealing, []byte(base64.StdEncoding.EncodeToString(raw)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lifetime := "10m"
	if tokensExpire() {
		lifetime = "1m"
	}
	o := &issuing{issuer: "http://" + approver, key: key}
	o.door = startUp(t, setup{
		servers: serversFile(t, map[string]entry{"echo": scripted("echo")}), listen: listen, env: []string{quickStop}, flags: []string{"--approver-listen", approver},
		config: fmt.Sprintf(`
credentials: {key_file: %q}
approver:
  public_url: %q
  keys: [{name: ada, owner: ada@x, hash: %q}]
  authorization_server:
    enabled: true
    token_lifetime: %s
    clients: [{id: app, name: App, redirect_uris: [%q]}]
front_door:
  public_url: "http://%s"
  keys: [{name: root, hash: %q}]
  issuers: [{name: people, issuer: %q, claims: {owner: owner}}]
`, sealing, o.issuer, hash, lifetime, redirect, listen, hash, o.issuer),
	})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	o.person = &http.Client{Jar: jar, Transport: &http.Transport{}}
	t.Cleanup(o.person.CloseIdleConnections)
	page := o.page(t, o.person.Get, o.issuer+"/sign-in")
	form := fields(page, "/sign-in")
	form.Set("key", key)
	o.page(t, func(to string) (*http.Response, error) { return o.person.PostForm(to, form) }, o.issuer+"/sign-in")
	return o
}

func (o *issuing) page(t *testing.T, ask func(string) (*http.Response, error), to string) string {
	t.Helper()
	resp, err := ask(to)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s answers %d, %v: %s", to, resp.StatusCode, err, text)
	}
	return string(text)
}

var (
	hiddenField = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`)
	leadsTo     = regexp.MustCompile(`http-equiv="refresh" content="0; url=([^"]+)"`)
)

// fields returns the hidden fields of the form that is sent to path.
func fields(page, path string) url.Values {
	form := url.Values{}
	_, page, _ = strings.Cut(page, `action="`+path+`"`)
	page, _, _ = strings.Cut(page, "</form>")
	for _, m := range hiddenField.FindAllStringSubmatch(page, -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	return form
}

// agree acts as the user who opens the authorization URL of a program and consents. It returns
// the URL of the final redirect.
func (o *issuing) agree(t *testing.T, address string) string {
	t.Helper()
	form := fields(o.page(t, o.person.Get, address), "/oauth/authorize")
	form.Set("answer", "allow")
	page := o.page(t, func(to string) (*http.Response, error) { return o.person.PostForm(to, form) }, o.issuer+"/oauth/authorize")
	m := leadsTo.FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("the page leads nowhere: %s", page)
	}
	return html.UnescapeString(m[1])
}

func TestAuthorizationServerPassesConformanceSuite(t *testing.T) {
	t.Parallel()
	script := installedPath(t, "tools", "mcp-npm", "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	node := installedPath(t, "tools", "mcp-npm", "node_modules", ".bin", "node")
	o := openIssuing(t, "http://127.0.0.1/callback")
	ctx, cancel := context.WithTimeout(t.Context(), clientSuiteWithin)
	defer cancel()
	_, port, _ := strings.Cut(porttest.Address(t), ":")
	cmd := exec.CommandContext(ctx, node, script, "authorization", "--url", o.issuer, "--client-id", "app", "--resource", o.url+"/mcp", "--port", port, "-o", t.TempDir())
	cmd.Dir, cmd.Env, cmd.SysProcAttr, cmd.WaitDelay = t.TempDir(), append(cleanEnviron(), "NO_COLOR=1", "HOME="+t.TempDir()), endsWithUs(), 5*time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		all.WriteString(line + "\n")
		if strings.HasPrefix(line, o.issuer+"/oauth/authorize?") {
			// The suite prints the URL before it listens for the redirect.
			eventually(t, clientSuiteWithin, "the suite listening", func() error {
				c, err := net.Dial("tcp", "127.0.0.1:"+port)
				if err == nil {
					err = c.Close()
				}
				return err
			})
			o.page(t, o.person.Get, o.agree(t, line))
		}
	}
	err = cmd.Wait()
	text := all.String()
	if err != nil || !strings.Contains(text, "authorization-code-grant") || strings.Contains(text, "SKIPPED") || strings.Contains(text, "WARNING") {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestTheGoSDKSignsInCallsStepsUpAndRefreshes(t *testing.T) {
	t.Parallel()
	const redirect = "http://127.0.0.1:9/callback"
	o := openIssuing(t, redirect)
	var asked []string
	var refreshes atomic.Int32
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		PreregisteredClient: &oauthex.ClientCredentials{ClientID: "app"}, RedirectURL: redirect, Client: &http.Client{Transport: transport},
		// It requests fewer scopes than it needs, so that a call makes it request more.
		ScopeFilter: func(found []string) []string {
			if !slices.Contains(found, "tools:read") {
				return found
			}
			return []string{"tools:read"}
		},
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			u, err := url.Parse(args.URL)
			if err != nil {
				return nil, err
			}
			asked = append(asked, u.Query().Get("scope"))
			back, err := url.Parse(o.agree(t, args.URL))
			if err != nil || !strings.HasPrefix(back.String(), redirect+"?") {
				return nil, errors.Join(errors.New("led to "+back.String()), err)
			}
			q := back.Query()
			return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
		},
		// Every access token counts as expired, so that each request refreshes.
		NewTokenSource: func(ctx context.Context, c *oauth2.Config, token *oauth2.Token) (oauth2.TokenSource, error) {
			return &impatient{ctx: ctx, config: c, refresh: token.RefreshToken, count: &refreshes}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "app", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: o.url + "/mcp", HTTPClient: &http.Client{Transport: transport}, OAuthHandler: handler}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	o.eventually(t, soon, "a call", func() error { // its server may still be starting
		got, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo__echo", Arguments: map[string]any{"text": "hello"}})
		if err == nil && got.IsError {
			err = fmt.Errorf("it failed: %+v", got.Content[0])
		}
		return err
	})
	if len(asked) != 2 || asked[0] != "tools:read" || !strings.Contains(asked[1], "tools:call") {
		t.Errorf("it asked for %q", asked)
	}
	if refreshes.Load() < 2 {
		t.Errorf("it refreshed %d times", refreshes.Load())
	}
}

// impatient refreshes for every request.
type impatient struct {
	ctx     context.Context
	config  *oauth2.Config
	refresh string
	count   *atomic.Int32
}

func (i *impatient) Token() (*oauth2.Token, error) {
	token, err := i.config.TokenSource(i.ctx, &oauth2.Token{RefreshToken: i.refresh}).Token()
	if err != nil {
		return nil, err
	}
	i.count.Add(1)
	i.refresh = token.RefreshToken
	return token, nil
}

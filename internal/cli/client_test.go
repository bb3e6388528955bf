package cli

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/kit/goldentest"
)

func TestMain(m *testing.M) {
	// A machine that runs many tests can stand still for seconds.
	completeWait, suggestFor, closeTimeout = time.Minute, time.Minute, time.Minute
	goleak.VerifyTestMain(m)
}

// golden compares the text with testdata/client/NAME.golden.
func golden(t *testing.T, name, got string) {
	t.Helper()
	goldentest.Text(t, filepath.Join("testdata", "client", name+".golden"), got)
}

// recorded returns a recorded response of a front door.
func recorded(t *testing.T, name string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", "client", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// answer is a response of a door.
type answer struct {
	status int // 0 means 200
	media  string
	header map[string]string
	body   string
}

func jsonAnswer(body string) answer { return answer{media: "application/json", body: body} }

func problemAnswer(status int, body string) answer {
	return answer{status: status, media: "application/problem+json", body: body}
}

// seen is a request to a door.
type seen struct {
	line   string // "METHOD /escaped/path?query"
	header http.Header
	body   string
}

// door is a fake front door with responses by "METHOD /escaped/path?query".
type door struct {
	*httptest.Server
	mu    sync.Mutex
	asked []seen
}

func openDoor(t *testing.T, answers map[string]answer) *door {
	t.Helper()
	d := &door{}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		// The order of parameters does not matter.
		line := r.Method + " " + r.URL.EscapedPath()
		if query := r.URL.Query().Encode(); query != "" {
			line += "?" + query
		}
		d.mu.Lock()
		d.asked = append(d.asked, seen{line, r.Header, string(body)})
		d.mu.Unlock()
		a, ok := answers[line]
		if !ok {
			a = problemAnswer(http.StatusNotFound, `{"title":"Not found","status":404,"detail":"There is no such path.","retryable":false}`)
		}
		for name, value := range a.header {
			w.Header().Set(name, value)
		}
		w.Header().Set("Content-Type", a.media)
		if a.status != 0 {
			w.WriteHeader(a.status)
		}
		_, _ = io.WriteString(w, a.body)
	}))
	t.Cleanup(d.Close)
	return d
}

// requests returns the requests to the door so far.
func (d *door) requests() []seen {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]seen(nil), d.asked...)
}

// plainEnvironment unsets variables that the shell of a developer may have set.
func plainEnvironment(t *testing.T) {
	t.Helper()
	for _, name := range []string{"CALLYARD_URL", "CALLYARD_KEY", "CALLYARD_KEY_FILE", "CALLYARD_APPROVER_KEY", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"} {
		t.Setenv(name, "")
	}
}

// testRoot returns the root command with the flags that main declares.
func testRoot() *cobra.Command {
	root := &cobra.Command{Use: "callyard", SilenceErrors: true, SilenceUsage: true, Args: takes(0, 0), RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	root.PersistentFlags().String("url", "", "")
	root.PersistentFlags().String("key", "", "")
	addOutputFlags(root)
	root.AddCommand(clientCommands()...)
	root.SetFlagErrorFunc(flagFault)
	return root
}

// typed runs a command line like main.
func typed(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return typedOn(t, testRoot(), stdin, args...)
}

// typedOn is [typed] for commands that testRoot does not have.
func typedOn(t *testing.T, root *cobra.Command, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errOut bytes.Buffer
	root.SetArgs(args)
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&errOut)
	err := root.ExecuteContext(t.Context())
	if err != nil {
		showError(&errOut, err)
	}
	return out.String(), errOut.String(), exitCode(err)
}

// clientOf returns a client of the door whose output is treated as a terminal.
func clientOf(t *testing.T, d *door, out, note io.Writer) *client {
	t.Helper()
	root := testRoot()
	if err := root.ParseFlags([]string{"--url", d.URL}); err != nil {
		t.Fatal(err)
	}
	root.SetOut(out)
	root.SetErr(note)
	c, err := clientFrom(root)
	if err != nil {
		t.Fatal(err)
	}
	c.out.terminal, c.note.terminal = true, true
	t.Cleanup(c.close)
	return c
}

func TestTheAddressComesFromTheFlagBeforeTheEnvironment(t *testing.T) {
	plainEnvironment(t)
	d := openDoor(t, map[string]answer{"GET /servers": jsonAnswer(`{"servers":[]}`), "GET /below/servers": jsonAnswer(`{"servers":[]}`)})
	t.Setenv("CALLYARD_URL", d.URL+"/below/")
	for _, args := range [][]string{{"servers"}, {"servers", "--url", d.URL + "/"}} {
		if _, stderr, code := typed(t, "", args...); code != exitOK {
			t.Fatalf("%q ended with %d: %s", args, code, stderr)
		}
	}
	got := d.requests()
	if len(got) != 2 || got[0].line != "GET /below/servers" || got[1].line != "GET /servers" {
		t.Errorf("asked %+v", got)
	}
}

func TestTheKeyIsSentAndNeverPrinted(t *testing.T) {
	plainEnvironment(t)
	refusal := problemAnswer(http.StatusUnauthorized, `{"title":"No valid credential","status":401,"detail":"The API key is not known here.","retryable":false}`)
	d := openDoor(t, map[string]answer{"GET /servers": refusal})
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(" from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CALLYARD_KEY_FILE", file)
	for _, step := range []struct {
		variable string
		args     []string
		want     string
	}{
		{"", nil, "from-file"},
		{"from-variable", nil, "from-variable"},
		{"from-variable", []string{"--key", "from-flag"}, "from-flag"},
	} {
		t.Setenv("CALLYARD_KEY", step.variable)
		stdout, stderr, code := typed(t, "", append([]string{"servers", "--url", d.URL}, step.args...)...)
		asked := d.requests()
		if got := asked[len(asked)-1].header.Get("Authorization"); got != "Bearer "+step.want {
			t.Errorf("sent %q, want the key %s", got, step.want)
		}
		if code != exitRefused || strings.Contains(stdout+stderr, step.want) || !strings.Contains(stderr, "CALLYARD_KEY") {
			t.Errorf("code %d, output %q %q", code, stdout, stderr)
		}
	}
}

func TestAWrongCommandLineIsRefusedBeforeARequest(t *testing.T) {
	plainEnvironment(t)
	for name, args := range map[string][]string{
		"no server":           {"call"},
		"no tool":             {"call", "demo"},
		"no tool to show":     {"tools", "show", "demo"},
		"too many servers":    {"tools", "a", "b"},
		"arguments to none":   {"servers", "demo"},
		"workers take none":   {"workers", "w1"},
		"events take none":    {"events", "now"},
		"a key needs a name":  {"keys", "new"},
		"unknown flag":        {"servers", "--colour"},
		"no address":          {"servers", "--url", "127.0.0.1:8080"},
		"another protocol":    {"servers", "--url", "ftp://127.0.0.1"},
		"a query":             {"servers", "--url", "http://127.0.0.1/?a=b"},
		"a password":          {"servers", "--url", "http://u:s3cret@127.0.0.1/"},
		"a key on two lines":  {"servers", "--key", "s3cret\nX-Other: 1"},
		"a negative time":     {"call", "demo", "add", "--timeout", "-1s"},
		"a time without unit": {"call", "demo", "add", "--timeout", "30"},
	} {
		stdout, stderr, code := typed(t, "", args...)
		if code != exitUsage || stdout != "" || stderr == "" {
			t.Errorf("%s: code %d, stdout %q, stderr %q", name, code, stdout, stderr)
		}
		if strings.Contains(stderr, "s3cret") {
			t.Errorf("%s: a secret is repeated: %s", name, stderr)
		}
	}
}

func TestAMissingOrEmptyKeyFileIsReported(t *testing.T) {
	plainEnvironment(t)
	folder := t.TempDir()
	for name, content := range map[string]string{"empty": "\n", "huge": strings.Repeat("k", keyFileMost+1), "missing": ""} {
		file := filepath.Join(folder, name)
		if content != "" {
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("CALLYARD_KEY_FILE", file)
		if _, stderr, code := typed(t, "", "servers"); code != exitUsage || !strings.Contains(stderr, "CALLYARD_KEY_FILE") {
			t.Errorf("%s: code %d, %s", name, code, stderr)
		}
	}
}

func TestANameIsOneSegmentOfThePath(t *testing.T) {
	plainEnvironment(t)
	for tool, path := range map[string]string{
		"a/b": "a%2Fb", "..": "%2E%2E", ".": "%2E", "zähl": "z%C3%A4hl", "a b?c#d": "a%20b%3Fc%23d", "x%2Fy": "x%252Fy", ".hidden": ".hidden",
	} {
		line := "POST /servers/s%2F1/tools/" + path
		d := openDoor(t, map[string]answer{line: jsonAnswer(`{"content":[]}`)})
		if _, stderr, code := typed(t, "", "call", "s/1", tool, "--url", d.URL); code != exitOK {
			t.Errorf("%q: code %d, %s; asked %+v", tool, code, stderr, d.requests())
		}
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	plainEnvironment(t)
	target := openDoor(t, nil)
	d := openDoor(t, map[string]answer{"GET /servers": {status: http.StatusMovedPermanently, header: map[string]string{"Location": target.URL + "/servers"}}})
	_, stderr, code := typed(t, "", "servers", "--url", d.URL, "--key", "k")
	if code != exitUnreachable || !strings.Contains(stderr, target.URL) || len(target.requests()) != 0 {
		t.Errorf("code %d, %s; the target was asked %d times", code, stderr, len(target.requests()))
	}
}

// cancelled returns a context that ends when the server receives a request.
func cancelled(t *testing.T) (context.Context, *httptest.Server) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done() // until the client closes the connection
	}))
	t.Cleanup(s.Close)
	return ctx, s
}

func TestAnInterruptClosesTheConnection(t *testing.T) {
	plainEnvironment(t)
	for _, args := range [][]string{{"call", "demo", "sleep"}, {"servers"}} {
		ctx, s := cancelled(t)
		root := testRoot()
		root.SetArgs(append(args, "--url", s.URL))
		err := root.ExecuteContext(ctx)
		if exitCode(err) != exitInterrupted || err.Error() != "Interrupted." {
			t.Errorf("%q: %v", args, err)
		}
	}
}

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// clientWithin limits the story of one client.
const clientWithin = 4 * time.Minute

// startForClients starts the servers of the client stories: one for each protocol
// version, one that sends requests itself, and one whose calls need an approval.
func startForClients(t *testing.T) *door {
	t.Helper()
	risky := scripted("echo")
	risky.RiskLevel = 2
	servers := map[string]entry{
		"everything":  fromNPM("everything", "stdio"),
		"conformance": {Command: filepath.Join(programs.test, "everything-server")},
		"asking":      {Command: filepath.Join(programs.test, "everything-server"), Asks: true},
		"risky":       risky,
	}
	up := startUp(t, setup{servers: serversFile(t, servers), env: []string{quickStop}})
	up.waitServers(t, 1, keys(servers)...)
	return up
}

// clientScripts returns the folder of the clients. It opens each script, like
// proc.Build does for the programs.
func clientScripts(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(programs.root, "e2e", "clients-mcp")
	files, err := filepath.Glob(filepath.Join(folder, "*.*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts in %s: %v", folder, err)
	}
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// clientReport is the report of a client, see e2e/clients-mcp/story.mjs.
type clientReport struct {
	Revision  string    `json:"revision"`
	Tools     []string  `json:"tools"`
	Said      string    `json:"said"`
	Simple    string    `json:"simple"`
	Progress  []float64 `json:"progress"`
	Cancelled string    `json:"cancelled"`
	Named     string    `json:"named"`
	Confirmed string    `json:"confirmed"`
	Elicited  string    `json:"elicited"`
	Asked     []string  `json:"asked"`
}

// check checks the report of a client.
func (r *clientReport) check(t *testing.T, up *door, revision string) {
	t.Helper()
	if r.Revision != revision {
		t.Errorf("it spoke revision %s, want %s", r.Revision, revision)
	}
	for _, want := range []string{"everything__echo", "conformance__test_simple_text", "risky__echo"} {
		if !slices.Contains(r.Tools, want) {
			t.Errorf("%s is not among the %d tools it lists", want, len(r.Tools))
		}
	}
	if r.Said != "Echo: good evening" || r.Simple == "" {
		t.Errorf("its calls said %q and %q", r.Said, r.Simple)
	}
	if len(r.Progress) == 0 || !slices.IsSorted(r.Progress) {
		t.Errorf("the progress that it saw is %v", r.Progress)
	}
	if r.Cancelled != "yes" {
		t.Errorf("the call that it cancelled: %s", r.Cancelled)
	}
	if r.Named != "Hello, Ada!" {
		t.Errorf("the server that asked for a name said %q", r.Named)
	}
	if r.Confirmed != "it ran" {
		t.Errorf("the held call that its user confirmed said %q", r.Confirmed)
	}
	asked := []string{"name", "requires approval"}
	if revision == legacy {
		asked = append(asked, "Which user is it?")
		if !strings.Contains(r.Elicited, "Ada") {
			t.Errorf("the server that asked by itself said %q", r.Elicited)
		}
	}
	if !slices.EqualFunc(r.Asked, asked, strings.Contains) {
		t.Errorf("its user was asked %q, want %q", r.Asked, asked)
	}
	up.eventually(t, soon, "the end of the cancelled call", func() error {
		if n := up.server(t, "everything").InFlight; n != 0 {
			return errInFlight(n)
		}
		return nil
	})
}

// report decodes the output of a client.
func (s programResult) report(t *testing.T) *clientReport {
	t.Helper()
	if s.code != 0 {
		t.Fatalf("the client ended with code %d\n%s%s", s.code, s.out, s.errors)
	}
	lines := strings.Split(strings.TrimSpace(s.out), "\n")
	var r clientReport
	decode(t, []byte(lines[len(lines)-1]), &r)
	return &r
}

func TestTypeScriptSDKListsCallsWatchesCancelsAndElicits(t *testing.T) {
	t.Parallel()
	folder := clientScripts(t)
	installedPath(t, "e2e", "clients-mcp", "node_modules", "@modelcontextprotocol", "client")
	up := startForClients(t)
	for _, c := range []struct{ script, era, revision string }{
		{"v1.mjs", "", legacy},
		{"v2.mjs", "legacy", legacy},
		{"v2.mjs", modern, modern},
	} {
		t.Run(c.script+" "+c.era, func(t *testing.T) {
			newNode(t, clientWithin, folder, c.script, up.url+"/mcp", c.era).report(t).check(t, up, c.revision)
		})
	}
}

func TestPythonSDKListsCallsWatchesCancelsAndElicits(t *testing.T) {
	t.Parallel()
	folder := clientScripts(t)
	python := installedPath(t, ".cache", "python-mcp", "bin", "python")
	up := startForClients(t)
	for _, c := range []struct{ era, revision string }{{"legacy", legacy}, {"auto", modern}} {
		t.Run(c.era, func(t *testing.T) {
			runTool(t, clientWithin, folder, python, "story.py", up.url+"/mcp", c.era).report(t).check(t, up, c.revision)
		})
	}
}

// inspect runs the inspector's command line, which must succeed, and returns its
// output.
func inspect(t *testing.T, url, era string, args ...string) string {
	t.Helper()
	launcher := installedPath(t, "tools", "mcp-npm", "node_modules", "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js")
	args = append([]string{"--cli", url, "--transport", "http", "--protocol-era", era, "--format", "json"}, args...)
	ran := newNode(t, clientWithin, t.TempDir(), launcher, args...)
	if ran.code != 0 {
		t.Fatalf("the inspector ended with code %d\n%s%s", ran.code, ran.out, ran.errors)
	}
	return ran.out
}

func TestInspectorFindsNoFaultWithEitherProtocolEra(t *testing.T) {
	t.Parallel()
	up := startForClients(t)
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			// --strict exits with code 6 if a schema is problematic for clients.
			var list struct {
				Result struct {
					Tools []struct {
						Name string `json:"name"`
					} `json:"tools"`
				} `json:"result"`
			}
			decode(t, []byte(inspect(t, up.url+"/mcp", era, "--method", "tools/list", "--strict")), &list)
			names := make(map[string]bool)
			for _, tool := range list.Result.Tools {
				names[tool.Name] = true
			}
			for _, want := range []string{"everything__echo", "conformance__test_simple_text", "risky__echo"} {
				if !names[want] {
					t.Errorf("%s is not listed among %d", want, len(names))
				}
			}
			var called struct {
				Result json.RawMessage `json:"result"`
			}
			out := inspect(t, up.url+"/mcp", era, "--method", "tools/call", "--tool-name", "everything__echo", "--tool-args-json", `{"message":"good evening"}`)
			decode(t, []byte(out), &called)
			if got := text(t, called.Result); got != "Echo: good evening" {
				t.Errorf("the call said %q", got)
			}
		})
	}
}

func TestInspectorConnectsToOneServerAtItsRESTPath(t *testing.T) {
	t.Parallel()
	up := startForClients(t)
	for _, path := range []string{"/servers/everything/mcp", "/mcp/everything"} {
		for _, era := range []string{"legacy", "modern"} {
			t.Run(era+path, func(t *testing.T) {
				var list struct {
					Result struct {
						Tools []struct {
							Name string `json:"name"`
						} `json:"tools"`
					} `json:"result"`
				}
				decode(t, []byte(inspect(t, up.url+path, era, "--method", "tools/list", "--strict")), &list)
				if !slices.ContainsFunc(list.Result.Tools, func(tool struct {
					Name string `json:"name"`
				}) bool {
					return tool.Name == "echo"
				}) {
					t.Errorf("echo is not among the %d tools", len(list.Result.Tools))
				}
				var called struct {
					Result json.RawMessage `json:"result"`
				}
				out := inspect(t, up.url+path, era, "--method", "tools/call", "--tool-name", "echo", "--tool-args-json", `{"message":"good evening"}`)
				decode(t, []byte(out), &called)
				if got := text(t, called.Result); got != "Echo: good evening" {
					t.Errorf("the call said %q", got)
				}
			})
		}
	}
}

func TestInspectorLoadTestGetsNoErrors(t *testing.T) {
	up := startForClients(t)
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			const calls = 100
			var load struct {
				Result struct {
					Requests int             `json:"requests"`
					OK       int             `json:"ok"`
					Messages json.RawMessage `json:"errorMessages"`
				} `json:"result"`
			}
			out := inspect(t, up.url+"/mcp", era, "--method", "tools/call", "--tool-name", "everything__echo", "--tool-args-json", `{"message":"good evening"}`,
				"--load", "--load-concurrency", "8", "--load-requests", strconv.Itoa(calls))
			decode(t, []byte(out), &load)
			if load.Result.Requests != calls || load.Result.OK != calls {
				t.Errorf("%d of %d calls went well: %s", load.Result.OK, load.Result.Requests, load.Result.Messages)
			}
		})
	}
}

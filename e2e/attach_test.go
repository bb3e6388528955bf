package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/callyard/callyard/pkg/bus/porttest"
)

// attachedExamples are the programs of docs/how-to/attach-a-program.md.
var attachedExamples = []struct {
	name, dir, file string
	build           []string // may be nil
	command         []string
}{
	{"python", "clients/python", "example/attached.py", nil, []string{"../../.cache/python/bin/python", "example/attached.py"}},
	{
		"typescript", "clients/typescript", "example/attached.ts",
		[]string{"node_modules/.bin/tsc", "--project", ".", "--outDir", "dist/attached"}, []string{"node", "dist/attached/example/attached.js"},
	},
}

// newAttachKey returns a key for attaching a server, with a servers file that has the server.
func newAttachKey(t *testing.T, server string) (key, file string) {
	t.Helper()
	_, out, _ := command(t, nil, "keys", "attach", server, "--json")
	var made struct {
		Key   string                     `json:"key"`
		Entry map[string]json.RawMessage `json:"entry"`
	}
	if err := json.Unmarshal([]byte(out), &made); err != nil {
		t.Fatalf("keys attach: %v, %s", err, out)
	}
	entry, err := json.Marshal(map[string]any{"mcpServers": made.Entry})
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "servers.json")
	write(t, file, strings.Replace(string(entry), `"riskLevel":2`, `"riskLevel":1`, 1))
	return made.Key, file
}

func TestAttachedExamplesServeReconnectAndDrain(t *testing.T) {
	document, err := os.ReadFile(filepath.Join(programs.root, "docs", "how-to", "attach-a-program.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range attachedExamples {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(programs.root, x.dir)
			if source, err := os.ReadFile(filepath.Join(dir, x.file)); err != nil || !bytes.Contains(document, append([]byte("\n"), source...)) {
				t.Errorf("docs/how-to/attach-a-program.md does not show %s as it is (%v)", x.file, err)
			}
			if x.build != nil {
				runClient(t, "", x.dir, x.build)
			}
			key, file := newAttachKey(t, "prices")
			at := fmt.Sprintf("127.0.0.1:%d", porttest.Port(t))
			s := setup{servers: file, data: t.TempDir(), listen: porttest.Address(t), env: []string{quickStop, "CALLYARD_WORKER_ATTACH_LISTEN=" + at}}
			up := startUp(t, s)
			if item := up.server(t, "prices"); item.Connected {
				t.Error("the server is connected while no program is attached")
			}
			path := x.command[0]
			if strings.HasPrefix(path, "..") {
				path = filepath.Join(dir, path)
			}
			p := start(t, program{name: x.name, path: path, args: x.command[1:], dir: dir, env: []string{
				"ATTACH_URL=ws://" + at, "ATTACH_KEY=" + key, "PYTHONPATH=" + dir, "PYTHONDONTWRITEBYTECODE=1", "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1",
			}})
			quote := func(d *door) {
				t.Helper()
				d.waitServers(t, 1, "prices")
				if a := d.ask(t, http.MethodPost, toolPath("prices", "quote"), `{"sku":"a","quantity":4}`); a.status != 200 || !strings.Contains(string(a.body), `"total":10`) {
					t.Errorf("quote: %d %s", a.status, a.body)
				}
			}
			quote(up)
			if a := up.ask(t, http.MethodGet, "/servers/prices/tools", ""); !strings.Contains(string(a.body), `"readOnlyHint":true`) || !strings.Contains(string(a.body), "What that number of an article costs.") {
				t.Errorf("the tool is %s", a.body)
			}
			up.kill9(t)
			again := startUp(t, s)
			quote(again)
			p.signal(t, syscall.SIGTERM)
			if code := p.wait(t, stopWithin); code != 0 {
				t.Errorf("the program exits with %d", code)
			}
			again.stop(t)
		})
	}
}

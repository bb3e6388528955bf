package mcptest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/mcptest"
)

func TestVersionChangesOnceTheToolsAreListed(t *testing.T) {
	dir := t.TempDir()
	set := func(version string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "version"), []byte(version), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set("one")
	p := start(t, mcptest.Versions, mcptest.Folder(dir))
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if got := p.line(); !strings.Contains(got, `"description":"one"`) {
		t.Fatal(got)
	}
	set("two")
	if got := p.line(); !strings.Contains(got, "tools/list_changed") {
		t.Fatal(got)
	}
	call := func(want string) {
		t.Helper()
		p.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"pay","arguments":{}}}`)
		if got := p.line(); !strings.Contains(got, `"text":"`+want+`"`) {
			t.Fatal(got)
		}
	}
	call("one")
	p.send(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
	p.line()
	call("two")
	if runs, err := mcptest.Runs(dir); err != nil || len(runs) != 2 || runs["one"] != 1 || runs["two"] != 1 {
		t.Errorf("%v, %v", runs, err)
	}
}

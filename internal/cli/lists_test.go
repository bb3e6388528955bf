package cli

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// listingCommands maps all listing groups to the path that they request.
var listingCommands = map[string]string{
	"approvals": "/approvals", "audit": "/audit", "batches": "/batches", "calls": "/calls", "hub": "", "keys": "/keys",
	"permissions": "/permissions", "servers": "/servers", "sets": "/sets", "tenants": "/tenants", "tools": "/tools", "usage": "/usage", "webhooks": "/webhooks/deliveries", "workers": "/workers",
}

func TestEveryGroupListsWithListAndLs(t *testing.T) {
	plainEnvironment(t)
	var asked []string
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path+"?"+r.URL.RawQuery)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{}`))
	}))
	defer door.Close()
	run := func(args ...string) ([]string, int) {
		asked = nil
		root := rootCommand()
		var out strings.Builder
		root.SetOut(&out)
		root.SetErr(&out)
		args = append(args, "--url", door.URL)
		if slices.Contains([]string{"approvals", "permissions"}, args[0]) {
			args = append(args, "--approver-url", door.URL)
		}
		root.SetArgs(args)
		err := root.ExecuteContext(t.Context())
		return asked, exitCode(err)
	}
	for _, cmd := range rootCommand().Commands() {
		_, known := listingCommands[cmd.Name()]
		lists := strings.HasPrefix(cmd.Short, "List") || strings.HasPrefix(cmd.Short, "Show who used")
		for _, below := range cmd.Commands() {
			lists = lists || below.Name() == "list"
		}
		if lists != known {
			t.Errorf("callyard %s lists: %v, and this test says %v", cmd.Name(), lists, known)
		}
	}
	for group, path := range listingCommands {
		list, code := run(group, "list")
		ls, codeLs := run(group, "ls")
		if !slices.Equal(list, ls) || code != codeLs || code != exitOK {
			t.Errorf("%s list: %q, exit %d; ls: %q, exit %d", group, list, code, ls, codeLs)
		}
		if path != "" && (len(list) == 0 || !strings.HasSuffix(strings.SplitN(list[len(list)-1], "?", 2)[0], path)) {
			t.Errorf("%s list asked for %q, want %s", group, list, path)
		}
		if !slices.Contains(listingGroups, group) {
			continue
		}
		if bare, code := run(group); !slices.Equal(bare, list) || code != exitOK {
			t.Errorf("%s alone asked for %q, exit %d; with list for %q", group, bare, code, list)
		}
	}
	// The list has the flags and arguments of the group.
	if list, code := run("calls", "ls", "--server", "demo", "--limit", "7"); code != exitOK || !strings.Contains(strings.Join(list, " "), "server=demo") {
		t.Errorf("calls ls --server: %q, exit %d", list, code)
	}
	if list, code := run("tools", "list", "demo"); code != exitOK || !strings.Contains(strings.Join(list, " "), "demo") {
		t.Errorf("tools list demo: %q, exit %d", list, code)
	}
	if _, code := run("calls", "list", "call_1"); code != exitUsage {
		t.Errorf("calls list call_1: exit %d", code)
	}
}

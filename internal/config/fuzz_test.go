package config

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// checkFaults fails where an error is not a well-formed list of faults.
func checkFaults(t *testing.T, err error) {
	t.Helper()
	var faults *Faults
	if !errors.As(err, &faults) || len(faults.List) == 0 {
		t.Fatalf("the error is no list of faults: %T %v", err, err)
	}
	for _, f := range faults.List {
		if f.Message == "" || strings.ContainsAny(f.String(), "\n\r\x00\x1b") {
			t.Fatalf("a fault is not one readable line: %q", f.String())
		}
	}
}

func FuzzConfigFile(f *testing.F) {
	for _, data := range globbed(f, "testdata/faults/*.yaml") {
		f.Add(data)
	}
	for _, text := range []string{"a: &a [*a]\n", "? [a]\n: b", "worker: {labels: {\"a\\u001b\": x}}", "%TAG ! x\n---\n!!str 1", "worker:\n  extra: 0x_1", "nats: ${HOME:-${X}}"} {
		f.Add([]byte(text))
	}
	path := filepath.Join(f.TempDir(), "c.yaml")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, first := Load(Source{Path: path, Env: testEnv}, defaults())
		if first == nil {
			return
		}
		checkFaults(t, first)
		if _, second := Load(Source{Path: path, Env: testEnv}, defaults()); second == nil || second.Error() != first.Error() {
			t.Fatalf("the faults differ between two readings:\n%v\n%v", first, second)
		}
	})
}

func FuzzServersFile(f *testing.F) {
	for _, pattern := range []string{"testdata/servers/*.json", "testdata/serverfaults/*.json"} {
		for _, data := range globbed(f, pattern) {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newServerReader("mcp.json", serversEnv)
		r.file("mcp.json", data)
		r.variables()
		servers, err := r.servers()
		if err != nil {
			checkFaults(t, err)
			return
		}
		for _, e := range servers.Entries {
			if idFault(e.ID) != "" || (e.Command == "") == (e.URL == "") {
				t.Fatalf("an entry that cannot be used was accepted: %+v", bare(e))
			}
		}
		sameRisk(t, data, servers.Entries)
	})
}

// sameRisk compares the levels with what the standard library reads.
func sameRisk(t *testing.T, data []byte, entries []ServerEntry) {
	var root map[string]json.RawMessage
	if json.Unmarshal(data, &root) != nil {
		return
	}
	var byID map[string]map[string]json.RawMessage
	for _, key := range []string{"mcpServers", "servers"} {
		list, ok := root[key]
		if !ok || json.Unmarshal(list, &byID) == nil {
			continue
		}
		var items []map[string]json.RawMessage // each with its name inside
		if json.Unmarshal(list, &items) != nil {
			return
		}
		byID = make(map[string]map[string]json.RawMessage)
		for _, item := range items {
			var id string
			if name, ok := item["id"]; !ok || json.Unmarshal(name, &id) != nil {
				_ = json.Unmarshal(item["name"], &id) // without one it is no server
			}
			byID[id] = item
		}
	}
	for _, e := range entries {
		want := "0"
		if level, ok := byID[e.ID]["riskLevel"]; ok {
			want = string(level)
		}
		if strconv.Itoa(e.Risk) != want {
			t.Fatalf("the risk level %s of %q was read as %d", want, e.ID, e.Risk)
		}
	}
}

func globbed(f *testing.F, pattern string) [][]byte {
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		f.Fatalf("no files match %s: %v", pattern, err)
	}
	var all [][]byte
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, data)
	}
	return all
}

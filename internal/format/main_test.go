package format

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/callyard/callyard/pkg/schema"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// toolOf returns a tool with the given definition.
func toolOf(t testing.TB, server schema.ServerID, raw string) *schema.Tool {
	t.Helper()
	var def struct {
		Name        string          `json:"name"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	if err := json.Unmarshal([]byte(raw), &def); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return &schema.Tool{Server: server, Name: def.Name, Raw: json.RawMessage(raw), Input: def.InputSchema}
}

// recorded returns tools that real servers sent, and those of odd.ndjson, which has a tool for each
// feature that some provider does not accept.
func recorded(t testing.TB) []*schema.Tool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "tools", "*.ndjson"))
	if err != nil || len(files) < 6 {
		t.Fatalf("%d files of tools, %v", len(files), err)
	}
	var all []*schema.Tool
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		server := schema.ServerID(strings.TrimSuffix(filepath.Base(file), ".ndjson"))
		for line := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n") {
			all = append(all, toolOf(t, server, line))
		}
	}
	return all
}

// directoryOf returns a directory of the tools.
func directoryOf(tools []*schema.Tool) Directory {
	by := make(map[string][]string)
	var servers []string
	for _, t := range tools {
		if by[string(t.Server)] == nil {
			servers = append(servers, string(t.Server))
		}
		by[string(t.Server)] = append(by[string(t.Server)], t.Name)
	}
	return Directory{
		Servers: func() []string { return servers },
		Tools:   func(server string) []string { return by[server] },
		Has:     func(server, tool string) bool { return slices.Contains(by[server], tool) },
	}
}

// golden compares JSON with an indented file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, got, "", "  "); err != nil {
		t.Fatalf("%s: not JSON: %s", name, got)
	}
	pretty.WriteByte('\n')
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(path, pretty.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), pretty.String()); diff != "" {
		t.Errorf("%s differs; -update writes it (-want +got)\n%s", name, diff)
	}
}

package bwrap

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/launch"
)

func TestMain(m *testing.M) {
	if launch.IsReaper() {
		os.Exit(launch.RunReaper())
	}
	if len(os.Args) > 2 && os.Args[1] == "bwrap-test-worker" {
		os.Exit(workerPart(os.Args[2]))
	}
	goleak.VerifyTestMain(m)
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

const patience = time.Minute

// program is a folder with the prober that everybody may enter.
func program(t testing.TB) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(os.Getenv("CALLYARD_TEST_BIN"), "sandbox-prober"))
	if err != nil {
		t.Fatalf("%v; scripts/test.sh --setup builds it", err)
	}
	dir, err := os.MkdirTemp("", "bwrap") //nolint:usetesting // the parent of that one is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, "prober"), content, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func maker(t testing.TB) *Maker {
	t.Helper()
	l, err := launch.New(quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	m, err := Open(t.Context(), Options{Launcher: l})
	if err != nil {
		t.Fatalf("these tests need bubblewrap, which scripts/test.sh --setup brings: %v", err)
	}
	return m
}

// proberSpec is a sandbox of the prober.
func proberSpec(t testing.TB, dir string, change func(*Config, *Program)) Spec {
	t.Helper()
	c, p := Config{Volumes: []string{dir + ":/srv/prober:ro"}}, Program{Command: "/srv/prober/prober"}
	if change != nil {
		change(&c, &p)
	}
	s, err := Resolve("prober", c, p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func start(t testing.TB, m *Maker, s Spec) *mcpClient {
	t.Helper()
	p, err := m.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(0) })
	return &mcpClient{p: p, in: bufio.NewReaderSize(p.Stdout, 64<<10)}
}

// client is a little MCP client.
type mcpClient struct {
	p    *Process
	in   *bufio.Reader
	next int
}

// tool calls a tool and returns its text.
func (k *mcpClient) tool(name string, args map[string]string) (string, error) {
	k.next++
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": k.next, "method": "tools/call", "params": map[string]any{"name": name, "arguments": args}})
	if err != nil {
		return "", err
	}
	if _, err := k.p.Stdin.Write(append(body, '\n')); err != nil {
		return "", err
	}
	if err := k.p.Stdout.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	line, err := k.in.ReadBytes('\n')
	if err != nil {
		return "", fmt.Errorf("%w; it %v; stderr %q", err, k.p.Err(), k.p.StderrTail())
	}
	var got struct {
		Result struct{ Content []struct{ Text string } }
	}
	if err := json.Unmarshal(line, &got); err != nil || len(got.Result.Content) != 1 {
		return "", fmt.Errorf("it answers %s", line)
	}
	return got.Result.Content[0].Text, nil
}

func (k *mcpClient) must(t testing.TB, name string, args map[string]string) string {
	t.Helper()
	got, err := k.tool(name, args)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return got
}

func ended(t testing.TB, p *Process) string {
	t.Helper()
	select {
	case <-p.Done():
		return p.Err().Error()
	case <-time.After(patience):
		t.Fatal("the sandbox is still there")
		return ""
	}
}

// marked returns the processes of this machine that have the mark in their
// environment.
func marked(mark string) []string {
	var out []string
	list, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range list {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), mark) {
			out = append(out, filepath.Base(filepath.Dir(path)))
		}
	}
	return out
}

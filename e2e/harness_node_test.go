package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mcpTools is the folder of the npm MCP tools. They need a newer Node.js than
// the other tools, which npm installs as a package.
func mcpTools() string { return filepath.Join(programs.root, "tools", "mcp-npm", "node_modules") }

// installedPath returns a path below the repository that scripts/test.sh installed.
func installedPath(t testing.TB, path ...string) string {
	t.Helper()
	full := filepath.Join(append([]string{programs.root}, path...)...)
	if _, err := os.Stat(full); err != nil {
		t.Fatalf("%v; run scripts/test.sh --setup, which brings it", err)
	}
	return full
}

// programResult is the result of a program that a test ran to its end.
type programResult struct {
	code        int
	out, errors string
}

// runTool runs a program to its end.
func runTool(t testing.TB, within time.Duration, dir, program string, args ...string) programResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	// These programs store data in a separate home directory, and must use no proxy for
	// local connections.
	node := filepath.Join(mcpTools(), ".bin")
	cmd.Env = append(cleanEnviron(), "HOME="+t.TempDir(), "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1", "NO_COLOR=1",
		"PYTHONDONTWRITEBYTECODE=1", "PATH="+node+string(os.PathListSeparator)+os.Getenv("PATH"))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.SysProcAttr = endsWithUs()
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && (ctx.Err() != nil || !errors.As(err, &exit)) {
		t.Fatalf("%s %s: %v (after %s at most)\n%s%s", filepath.Base(program), strings.Join(args, " "), err, within, &out, &errs)
	}
	return programResult{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// newNode runs an npm script with the Node.js of tools/mcp-npm.
func newNode(t testing.TB, within time.Duration, dir, script string, args ...string) programResult {
	t.Helper()
	return runTool(t, within, dir, installedPath(t, "tools", "mcp-npm", "node_modules", ".bin", "node"), append([]string{script}, args...)...)
}

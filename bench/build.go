package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// modulePath is the first line of the go.mod at the root of the repository.
const modulePath = "module github.com/callyard/callyard"

// binaries holds the paths of the programs of the fabric.
type binaries struct {
	callyard, frontdoor, worker, nats string
}

func binariesIn(dir string) binaries {
	return binaries{
		callyard:  filepath.Join(dir, "callyard"),
		frontdoor: filepath.Join(dir, "frontdoor"),
		worker:    filepath.Join(dir, "worker"),
		nats:      filepath.Join(dir, "nats-server"),
	}
}

// build builds the programs of the targets from the repository at root into dir. The
// NATS server has the version of our go.mod.
func build(ctx context.Context, root, dir string, three bool) (binaries, error) {
	packages := []string{"./cmd/callyard"}
	if three {
		packages = []string{"./cmd/frontdoor", "./cmd/worker", "github.com/nats-io/nats-server/v2"}
	}
	args := append([]string{"build", "-trimpath", "-o", dir + string(filepath.Separator)}, packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return binaries{}, fmt.Errorf("building the fabric (%w): %s", err, strings.TrimSpace(string(out)))
	}
	return binariesIn(dir), nil
}

var errNoRoot = errors.New("this is not inside the repository of Callyard: run it there, or name the built programs (bin) and the command of the everything server")

// findRoot returns the repository that contains dir.
func findRoot(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("looking for the repository: %w", err)
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if line, _, _ := strings.Cut(string(text), "\n"); err == nil && strings.TrimSpace(line) == modulePath {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errNoRoot
		}
		dir = up
	}
}

// everythingCommand returns the command line of the everything server that npm
// installed below the repository.
func everythingCommand(root string) ([]string, error) {
	script := filepath.Join(root, "e2e", "servers", "node_modules", "@modelcontextprotocol", "server-everything", "dist", "index.js")
	if _, err := os.Stat(script); err != nil {
		return nil, errors.New("the everything server is not installed; run `npm ci` in e2e/servers")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, errors.New("node is not in PATH; install it, or give the command of the everything server")
	}
	return []string{node, script, "stdio"}, nil
}

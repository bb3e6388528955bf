package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// testEnd is the outcome of a test.
type testEnd struct {
	passed bool
	took   time.Duration
}

// runTests runs tests, one package at a time, and returns the outcome of each of them. A
// test that did not run has not passed.
func runTests(ctx context.Context, root string, tests []Test, log *slog.Logger) (map[Test]testEnd, error) {
	ends := map[Test]testEnd{}
	byPackage := map[string][]string{}
	for _, t := range tests {
		top, _, _ := strings.Cut(t.Name, "/")
		if top = regexp.QuoteMeta(top); !slices.Contains(byPackage[t.Package], top) {
			byPackage[t.Package] = append(byPackage[t.Package], top)
		}
	}
	for _, t := range tests {
		names, left := byPackage[t.Package]
		if !left {
			continue
		}
		delete(byPackage, t.Package)
		log.Info("running tests", "package", t.Package, "tests", len(names))
		module, folder := root, t.Package
		if below, found := strings.CutPrefix(t.Package, "./e2e"); found { // a separate module
			module, folder = filepath.Join(root, "e2e"), "."+below
		}
		cmd := exec.CommandContext(ctx, "go", "test", "-json", "-count=1", "-timeout", "40m", "-run", "^("+strings.Join(names, "|")+")$", folder)
		cmd.Dir, cmd.Stderr = module, os.Stderr
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return nil, fmt.Errorf("running the tests of %s: %w", t.Package, err)
		}
		if err := readTests(out, t.Package, ends, os.Stderr); err != nil {
			_ = cmd.Wait()
			return nil, err
		}
		if err := cmd.Wait(); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			log.Warn("tests failed", "package", t.Package, "error", err)
		}
	}
	return ends, nil
}

// readTests reads the events of go test, and shows the output of failed tests.
func readTests(from io.Reader, of string, ends map[Test]testEnd, show io.Writer) error {
	const longest = 16 << 20
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, longest)
	said := map[string]*strings.Builder{}
	for lines.Scan() {
		var e struct {
			Action, Test, Output string
			Elapsed              float64
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("reading the events of the tests of %s: %w", of, err)
		}
		if said[e.Test] == nil {
			said[e.Test] = &strings.Builder{}
		}
		switch e.Action {
		case "output":
			said[e.Test].WriteString(e.Output)
		case "pass", "fail", "skip":
			ends[Test{of, e.Test}] = testEnd{e.Action == "pass", time.Duration(e.Elapsed * float64(time.Second))}
			if e.Action == "fail" {
				_, _ = io.WriteString(show, said[e.Test].String())
			}
			delete(said, e.Test)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading the events of the tests of %s: %w", of, err)
	}
	return nil
}

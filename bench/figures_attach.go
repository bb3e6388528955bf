package bench

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	echoServer = "echo"
	attachMost = 64 // concurrent calls of one program
)

// echoProgram is an MCP server written with the official SDK of its language. It
// serves stdio, or attaches with our adapter.
type echoProgram struct {
	language string
	command  []string
	env      map[string]string
}

// echoPrograms builds and returns the two programs.
func echoPrograms(ctx context.Context, root string) ([]echoProgram, error) {
	typescript, python := filepath.Join(root, "clients", "typescript"), filepath.Join(root, "clients", "python")
	interpreter := filepath.Join(root, ".cache", "python", "bin", "python")
	compiler := filepath.Join(typescript, "node_modules", ".bin", "tsc")
	for _, file := range []string{compiler, interpreter} {
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("%s is missing; run scripts/test.sh --setup", file)
		}
	}
	build := exec.CommandContext(ctx, compiler, "--project", ".")
	build.Dir = typescript
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compiling the TypeScript client (%w): %s", err, strings.TrimSpace(string(out)))
	}
	return []echoProgram{
		{"TypeScript", []string{"node", filepath.Join(typescript, "dist", "bench", "echo.js")}, map[string]string{}},
		{"Python", []string{interpreter, filepath.Join(python, "bench", "echo.py")}, map[string]string{"PYTHONPATH": python, "PYTHONDONTWRITEBYTECODE": "1"}},
	}, nil
}

// attachFigure calls a server that Callyard starts, and the same server attached, in turn.
func attachFigure(ctx context.Context, s *figureEnv) error {
	programs, err := echoPrograms(ctx, s.root)
	if err != nil {
		return err
	}
	for _, p := range programs {
		if err := s.attached(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", p.language, err)
		}
	}
	return nil
}

func (s *figureEnv) attached(ctx context.Context, p echoProgram) (err error) {
	started, err := s.echoStarted(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, started.Close()) }()
	attached, err := s.echoAttached(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, attached.Close()) }()
	var load gauge
	rates, last := map[*fabric][]float64{}, map[*fabric]Sample{}
	for round := range s.o.Rounds + 1 {
		for _, f := range []*fabric{started, attached} {
			sample, err := load.measure(ctx, f, batchSize, bridgeLanes, s.o.Warmup, s.o.Duration)
			if err != nil {
				return err
			}
			if round > 0 {
				rates[f], last[f] = append(rates[f], sample.Rate), sample
			}
		}
	}
	one, other := median(rates[started]), median(rates[attached])
	const line = "%.0f calls/s; CPU for each: Callyard %.0f µs, server %.0f µs"
	s.info(p.language+" on stdio, 50 at once", line, one, last[started].CPU["callyard"], last[started].CPU[toolServer])
	s.info(p.language+" attached, 50 at once", line, other, last[attached].CPU["callyard"], last[attached].CPU[toolServer])
	s.check(p.language+", attached ÷ stdio", other/one, "", other >= 0.8*one, "≥ 0.8")
	return nil
}

// echoStarted starts Callyard in one process, which starts the program.
func (s *figureEnv) echoStarted(ctx context.Context, p echoProgram) (*fabric, error) {
	f, _, err := s.echoUp(ctx, map[string]any{"command": p.command[0], "args": p.command[1:], "env": p.env, "inFlight": attachMost, "sessions": 1})
	if err != nil {
		return nil, err
	}
	return f, f.answers(ctx)
}

// echoAttached starts Callyard in one process, and the program, which attaches to it.
func (s *figureEnv) echoAttached(ctx context.Context, p echoProgram) (*fabric, error) {
	key := "cy_" + rand.Text()
	hash := sha256.Sum256([]byte(key))
	addresses, err := freeAddresses(1)
	if err != nil {
		return nil, err
	}
	entry := map[string]any{"attach": true, "attach_keys": []string{"sha256:" + hex.EncodeToString(hash[:])}}
	f, dir, err := s.echoUp(ctx, entry, "CALLYARD_WORKER_ATTACH_LISTEN="+addresses[0])
	if err != nil {
		return nil, err
	}
	env := []string{"ATTACH_URL=ws://" + addresses[0], "ATTACH_KEY=" + key, "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1"}
	for name, value := range p.env {
		env = append(env, name+"="+value)
	}
	path, err := exec.LookPath(p.command[0])
	if err != nil {
		return nil, errors.Join(fmt.Errorf("finding %s: %w", p.command[0], err), f.Close())
	}
	c, err := startChild(echoServer, path, p.command[1:], filepath.Join(dir, "echo.log"), env...)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	f.children = append(f.children, c)
	f.pids[toolServer] = c.pid()
	return f, f.answers(ctx)
}

// echoUp starts Callyard in one process with the given servers file entry for the echo server
// and additional environment variables. It also returns the folder.
func (s *figureEnv) echoUp(ctx context.Context, entry map[string]any, env ...string) (*fabric, string, error) {
	entry["riskLevel"] = 1
	servers, dir, err := s.servers(map[string]any{echoServer: entry})
	if err != nil {
		return nil, "", err
	}
	f, err := launchUp(s.bin, servers, dir, env...)
	if err != nil {
		return nil, "", err
	}
	return f, dir, f.reach(ctx, AllInOne, "/servers/"+echoServer+"/tools/"+toolName)
}

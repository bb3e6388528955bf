package bench

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/pkg/schema"
	"github.com/callyard/callyard/pkg/worker"
)

const (
	// atOnce is the number of concurrent calls in the benchmark of ToolRegistry, and repeats
	// the number of repetitions.
	atOnce       = 100
	repeats      = 10
	toolRegistry = "ToolRegistry"
	peerTimeout  = 3 * time.Minute
)

// registryScript measures ToolRegistry in the same way as its authors. Its arguments are the
// addresses of the OpenAPI document and of the MCP server. It prints calls/s by kind as JSON.
//
//go:embed registry_peer.py
var registryScript string

// registryKinds returns the rows of the published table, in its order.
func registryKinds() []string { return []string{"native", "class", "openapi", "mcp"} }

// parseRegistry parses the output of the script. The better mode of each kind counts.
func parseRegistry(out []byte) (map[string]float64, error) {
	var modes map[string]map[string]float64
	line := out[bytes.LastIndexByte(bytes.TrimSpace(out), '\n')+1:]
	if err := json.Unmarshal(line, &modes); err != nil {
		return nil, fmt.Errorf("reading the rates of ToolRegistry: %w", err)
	}
	best := make(map[string]float64)
	for _, rates := range modes {
		for kind, rate := range rates {
			best[kind] = max(best[kind], rate)
		}
	}
	for _, kind := range registryKinds() {
		if best[kind] <= 0 {
			return nil, fmt.Errorf("ToolRegistry has no rate for %s", kind)
		}
	}
	return best, nil
}

// registryPython returns the interpreter that has ToolRegistry, and the version. Both are
// empty if there is none.
func (s *figureEnv) registryPython(ctx context.Context) (python, version string) {
	python = s.o.Python
	if python == "" {
		python = "python3"
	}
	out, err := exec.CommandContext(ctx, python, "-c", "import toolregistry; print(toolregistry.__version__)").Output()
	if err != nil {
		return "", ""
	}
	return python, strings.TrimSpace(string(out))
}

// publishedRegistry makes 100 concurrent calls of a calculator, for the four kinds of tools: a
// function, the methods of a class, OpenAPI, MCP.
func publishedRegistry(ctx context.Context, s *figureEnv) (err error) {
	services, err := startCalculators()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, services.close()) }()
	theirs, against := map[string]float64{}, toolRegistry
	if python, version := s.registryPython(ctx); python != "" {
		against += " " + version
		if theirs, err = s.measureRegistry(ctx, python, services); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(s.say, "  ToolRegistry is not installed for python3: only the published figures")
	}
	ours, err := nativeRates(ctx)
	if err != nil {
		return err
	}
	if err := s.remoteRates(ctx, services, ours); err != nil {
		return err
	}
	for _, kind := range registryKinds() {
		s.compare(comparison{key: "registry/" + kind, part: "100 calls at once", what: kind, unit: "calls/s", more: true, against: against, theirs: theirs[kind], ours: ours[kind]})
	}
	return nil
}

// measureRegistry runs the script.
func (s *figureEnv) measureRegistry(ctx context.Context, python string, services *calculators) (map[string]float64, error) {
	dir, err := s.folder()
	if err != nil {
		return nil, err
	}
	script := filepath.Join(dir, "registry_peer.py")
	if err := os.WriteFile(script, []byte(registryScript), 0o600); err != nil {
		return nil, fmt.Errorf("writing the script for ToolRegistry: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, script, services.base+"/openapi.json", services.base+"/mcp")
	var told bytes.Buffer
	cmd.Stderr = &told
	out, err := cmd.Output()
	if err != nil {
		text := strings.TrimSpace(told.String())
		return nil, fmt.Errorf("measuring ToolRegistry (%w): %s", err, text[max(len(text)-tailSize, 0):])
	}
	return parseRegistry(out)
}

// pair holds the arguments of the calculator.
type pair struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}

// calculator is the class of the benchmark.
type calculator struct{}

func (calculator) add(_ context.Context, p pair) (float64, error)      { return p.A + p.B, nil }
func (calculator) subtract(_ context.Context, p pair) (float64, error) { return p.A - p.B, nil }
func (calculator) multiply(_ context.Context, p pair) (float64, error) { return p.A * p.B, nil }
func (calculator) divide(_ context.Context, p pair) (float64, error)   { return p.A / p.B, nil }

// calculatorTools returns the names, in the order of their use.
func calculatorTools() []string { return []string{"add", "subtract", "multiply", "divide"} }

// nativeRates measures functions and methods in a fabric inside this process, with all
// checks of the gate.
func nativeRates(ctx context.Context) (rates map[string]float64, err error) {
	functions, class := worker.NewServer("functions"), worker.NewServer("class")
	worker.Tool(functions, "add", "Adds.", func(_ context.Context, p pair) (float64, error) { return p.A + p.B, nil })
	worker.Tool(functions, "subtract", "Subtracts.", func(_ context.Context, p pair) (float64, error) { return p.A - p.B, nil })
	worker.Tool(functions, "multiply", "Multiplies.", func(_ context.Context, p pair) (float64, error) { return p.A * p.B, nil })
	worker.Tool(functions, "divide", "Divides.", func(_ context.Context, p pair) (float64, error) { return p.A / p.B, nil })
	c := calculator{}
	worker.Tool(class, "add", "Adds.", c.add)
	worker.Tool(class, "subtract", "Subtracts.", c.subtract)
	worker.Tool(class, "multiply", "Multiplies.", c.multiply)
	worker.Tool(class, "divide", "Divides.", c.divide)
	f, err := worker.Local(functions, class)
	if err != nil {
		return nil, fmt.Errorf("starting a fabric in this process: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	rates = make(map[string]float64)
	for kind, server := range map[string]string{"native": functions.Name(), "class": class.Name()} {
		var calls []func() error
		for i := range atOnce {
			tool := calculatorTools()[i%4]
			calls = append(calls, func() error {
				result, err := f.Call(ctx, schema.ServerID(server), tool, fmt.Appendf(nil, `{"a":%d,"b":%d}`, i, i+1))
				if err == nil && result.ToolError {
					err = errTool
				}
				return err
			})
		}
		if rates[kind], err = rateAtOnce(calls); err != nil {
			return nil, err
		}
	}
	return rates, nil
}

// rateAtOnce makes the calls concurrently, several times, and returns calls/s over all
// repetitions except the first.
func rateAtOnce(calls []func() error) (float64, error) {
	var took time.Duration
	for repeat := range repeats + 1 {
		failed := make([]error, len(calls))
		var all sync.WaitGroup
		began := time.Now()
		for i, call := range calls {
			all.Go(func() { failed[i] = call() })
		}
		all.Wait()
		if repeat > 0 {
			took += time.Since(began)
		}
		if err := errors.Join(failed...); err != nil {
			return 0, fmt.Errorf("calls at once: %w", err)
		}
	}
	return float64(repeats*len(calls)) / took.Seconds(), nil
}

// remoteRates measures the calculator as a REST service and as a remote MCP server of
// Callyard in one process, over HTTP.
func (s *figureEnv) remoteRates(ctx context.Context, services *calculators, rates map[string]float64) (err error) {
	servers, dir, err := s.servers(map[string]any{
		"openapi": map[string]any{"openapi": services.base + "/openapi.json", "base_url": services.base, "riskLevel": 1},
		"mcp":     map[string]any{"url": services.base + "/mcp", "riskLevel": 1},
	})
	if err != nil {
		return err
	}
	f, err := launchUp(s.bin, servers, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for kind, arguments := range map[string]string{"openapi": `{"body":{"a":7,"b":8}}`, "mcp": `{"a":7,"b":8}`} {
		var requests []httpRequest
		for _, tool := range calculatorTools() {
			requests = append(requests, httpRequest{"POST", "/servers/" + kind + "/tools/" + tool, []byte(arguments)})
		}
		m, err := newMix(kind, "http://"+f.address, nil, false, nil, requests...)
		if err != nil {
			return err
		}
		var last error
		if err := f.await(ctx, "answering calls", func() bool { last = tryOnce(ctx, m); return last == nil }); err != nil {
			return errors.Join(err, last)
		}
		if rates[kind], err = lanesAtOnce(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// lanesAtOnce is rateAtOnce on keep-alive connections.
func lanesAtOnce(ctx context.Context, m *mixTarget) (float64, error) {
	var calls []func() error
	for i := range atOnce {
		lane, err := m.Dial(ctx, i, 0)
		if err != nil {
			return 0, err
		}
		defer func() { _ = lane.Close() }() // its errors are not errors of calls
		calls = append(calls, lane.Call)
	}
	return rateAtOnce(calls)
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"time"
)

// mcpBridge is the name of the proxy whose authors published the benchmark.
const mcpBridge = "MCP Bridge"

// contender is a proxy in front of the reference servers.
type contender struct {
	name, base string
	headers    map[string]string
	pids       map[string]int
	cold       time.Duration // from its start until every operation was answered
	operations []operation
	fabric     *fabric // nil if the bench did not start it
}

func (c *contender) close() error {
	if c.fabric == nil {
		return nil
	}
	return c.fabric.Close()
}

// mix returns the contender as a target that is loaded with the requests.
func (c *contender) mix(confirm bool, requests ...httpRequest) (*mixTarget, error) {
	return newMix(c.name, c.base, c.pids, confirm, c.headers, requests...)
}

// memory returns the resident memory of the proxy without its servers, in MiB. 0 means unknown.
func (c *contender) memory() float64 {
	var sum int64
	for _, pid := range c.pids {
		n, _ := residentMemory(pid)
		sum += n
	}
	return float64(sum) / (1 << 20)
}

// contend starts a proxy in front of the reference servers, with the same risk level for all of
// them, and waits until each operation has been answered or, at risk level 2, held.
func (s *figureEnv) contend(ctx context.Context, name string, level int) (*contender, error) {
	dir, err := s.folder()
	if err != nil {
		return nil, err
	}
	servers, operations, err := references(s.root, dir)
	if err != nil {
		return nil, err
	}
	for id, server := range servers {
		server.RiskLevel = level
		servers[id] = server
	}
	file := filepath.Join(dir, "servers.json")
	if err := writeServers(file, servers); err != nil {
		return nil, err
	}
	began := time.Now()
	f, err := s.launchContender(ctx, name, file, dir)
	if err != nil {
		return nil, err
	}
	c := &contender{name: name, base: "http://" + f.address, operations: operations, fabric: f, pids: make(map[string]int)}
	for _, child := range f.children {
		c.pids[child.name] = child.pid()
	}
	for _, o := range operations {
		m, err := c.mix(level > 1, o.request())
		if err != nil {
			return nil, errors.Join(err, c.close())
		}
		var last error
		err = f.await(ctx, "answering "+o.name(), func() bool { last = tryOnce(ctx, m); return last == nil })
		if err != nil {
			return nil, errors.Join(err, last, c.close())
		}
	}
	c.cold = time.Since(began)
	return c, nil
}

// launchContender starts the processes without waiting for them.
func (s *figureEnv) launchContender(ctx context.Context, name, servers, dir string) (*fabric, error) {
	switch name {
	case AllInOne:
		return launchUp(s.bin, servers, dir)
	case ThreeProcesses:
		return launchThree(ctx, s.bin, servers, dir)
	}
	addresses, err := freeAddresses(1)
	if err != nil {
		return nil, err
	}
	f := &fabric{address: addresses[0]}
	port, err := url.Parse("http://" + addresses[0])
	if err != nil {
		return nil, fmt.Errorf("reading an address: %w", err)
	}
	env := []string{"PORT=" + port.Port(), "MCP_CONFIG_PATH=" + servers}
	return f, f.start(name, "node", dir, env, filepath.Join(s.o.MCPBridge, "mcp-bridge.js"))
}

// givenPeer returns the endpoint of the options as a contender: a running proxy with
// the four servers under their names. Only the host and port of the endpoint are used.
func (s *figureEnv) givenPeer(operations []operation) *contender {
	if len(s.peers) == 0 {
		return nil
	}
	e := s.peers[0]
	return &contender{name: e.name, base: e.url.Scheme + "://" + e.url.Host, headers: e.headers, pids: maps.Clone(e.pids), operations: operations}
}

// processEach measures n calls of an operation with a client that starts the server for each
// call. It returns the median in microseconds.
func processEach(ctx context.Context, server reference, o operation, n int) (float64, error) {
	var took []float64
	for range n {
		began := time.Now()
		t, err := startSDK(ctx, append([]string{server.Command}, server.Args...), slices.Collect(environment(server.Env))...)
		if err != nil {
			return 0, err
		}
		lane, err := (&keepAlive{t, o.tool, o.arguments}).Dial(ctx, 0, 0)
		if err == nil {
			err = lane.Call()
		}
		took = append(took, float64(time.Since(began).Microseconds()))
		t.drop()
		if err != nil {
			return 0, fmt.Errorf("%s with a process for each call: %w", o.name(), err)
		}
	}
	return median(took), nil
}

func environment(env map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key, value := range env {
			if !yield(key + "=" + value) {
				return
			}
		}
	}
}

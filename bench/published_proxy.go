package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/kit/sleep"
)

const (
	// The absolute limits of our figures.
	confirmMost     = 2.5 // ms
	idleMost        = 60  // MiB
	loadedMost      = 120 // MiB
	threeShare      = 0.8 // of the p50 of MCP Bridge at c=1
	idleAfter       = 15 * time.Second
	memoryLanes     = 50
	processesEach   = 3
	memoryLookEvery = 50 * time.Millisecond
)

// publishedFigure runs the benchmark that the authors of MCP Bridge published, and that of
// ToolRegistry. Each peer is measured if it is installed.
func publishedFigure(ctx context.Context, s *figureEnv) error {
	for _, part := range []func(context.Context, *figureEnv) error{publishedProxy, publishedRisk, publishedRegistry} {
		if err := part(ctx, s); err != nil {
			return err
		}
	}
	return publishedLines(s)
}

func (s *figureEnv) compare(c comparison) {
	s.rows = append(s.rows, c)
	text := fmt.Sprintf("  %s, %s: %s %s", c.part, c.what, amountText(c.ours), c.unit)
	if c.theirs > 0 {
		text += fmt.Sprintf("; %s: %s", c.against, amountText(c.theirs))
	}
	fmt.Fprintln(s.say, text)
}

// proxies are the contenders of a part: ours in one process and in three, and the peer.
type proxies struct{ one, three, peer *contender }

func (p *proxies) all() (all []*contender) {
	for _, c := range []*contender{p.one, p.three, p.peer} {
		if c != nil {
			all = append(all, c)
		}
	}
	return all
}

func (p *proxies) close() (err error) {
	for _, c := range p.all() {
		err = errors.Join(err, c.close())
	}
	return err
}

// peerName returns the peer's name in the table.
func (p *proxies) peerName() string {
	if p.peer == nil {
		return mcpBridge
	}
	return p.peer.name
}

// of returns the figure of the peer, or 0 if there is no peer.
func (p *proxies) of(figures map[*contender]float64) float64 { return figures[p.peer] }

// coldStarts starts the proxies in turn, and keeps the proxies of the last round running.
func (s *figureEnv) coldStarts(ctx context.Context) (p *proxies, err error) {
	took := map[string][]float64{}
	p = &proxies{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	names := []string{AllInOne}
	if s.o.MCPBridge != "" {
		names = append(names, mcpBridge)
	}
	for round := range s.o.Rounds {
		for _, name := range names {
			c, err := s.contend(ctx, name, 1)
			if err != nil {
				return p, err
			}
			took[name] = append(took[name], c.cold.Seconds()*1000)
			switch {
			case round < s.o.Rounds-1:
				if err := c.close(); err != nil {
					return p, err
				}
			case name == AllInOne:
				p.one = c
			default:
				p.peer = c
			}
		}
	}
	if p.three, err = s.contend(ctx, ThreeProcesses, 1); err != nil {
		return p, err
	}
	if p.peer == nil {
		p.peer = s.givenPeer(p.one.operations)
	}
	s.compare(comparison{key: "cold", part: "cold start", what: "four servers answer", unit: "ms", against: p.peerName(), theirs: median(took[mcpBridge]), ours: median(took[AllInOne])})
	return p, nil
}

func publishedProxy(ctx context.Context, s *figureEnv) (err error) {
	p, err := s.coldStarts(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	sleep.For(idleAfter, ctx.Done())
	s.compareMemory("idle", "rss/idle", idleMost, p, p.one.memory(), p.peerMemory())
	if err := s.publishedOperations(ctx, p); err != nil {
		return err
	}
	if err := s.publishedLoad(ctx, p); err != nil {
		return err
	}
	return s.publishedEndpoints(ctx, p)
}

func (p *proxies) peerMemory() float64 {
	if p.peer == nil {
		return 0
	}
	return p.peer.memory()
}

func (s *figureEnv) compareMemory(when, key string, most float64, p *proxies, ours, theirs float64) {
	s.compare(comparison{key: key, part: "memory", what: "resident, " + when + ", without the servers", unit: "MiB", against: p.peerName(), theirs: theirs, ours: ours, most: most, note: "it cannot be read here"})
}

// latencies measures the requests at c=1 on each contender in turn. It returns the medians of
// p50 in ms.
func (s *figureEnv) latencies(ctx context.Context, contenders []*contender, confirm bool, request func(*contender) httpRequest) (map[*contender]float64, error) {
	all := map[*contender][]float64{}
	for range s.o.Rounds {
		for _, c := range contenders {
			m, err := c.mix(confirm, request(c))
			if err != nil {
				return nil, err
			}
			sample, err := s.loaded(ctx, m, 1)
			if err != nil {
				return nil, err
			}
			all[c] = append(all[c], sample.P50/1000)
		}
	}
	medians := make(map[*contender]float64, len(all))
	for c, values := range all {
		medians[c] = median(values)
	}
	return medians, nil
}

// loaded makes one measurement. It fails unless calls were answered and none failed.
func (s *figureEnv) loaded(ctx context.Context, t Target, lanes int) (Sample, error) {
	sample, err := s.load.measure(ctx, t, 0, lanes, s.o.Warmup, s.o.Duration/2)
	if err != nil {
		return sample, err
	}
	if sample.Calls == 0 {
		return sample, fmt.Errorf("%s answered no call: %v", t.Name(), sample.Failures)
	}
	if sample.Errors > 0 {
		fmt.Fprintf(s.say, "  %s, c=%d: %d failures: %v\n", t.Name(), lanes, sample.Errors, sample.Failures)
	}
	return sample, nil
}

// publishedOperations calls each of the six operations at c=1 on ours, the peer, a client that
// stays connected, and a client that starts a process for each call.
func (s *figureEnv) publishedOperations(ctx context.Context, p *proxies) error {
	dir, err := s.folder()
	if err != nil {
		return err
	}
	servers, operations, err := references(s.root, dir)
	if err != nil {
		return err
	}
	for i, o := range operations {
		if err := s.publishedOperation(ctx, p, i, servers[o.server], o); err != nil {
			return err
		}
	}
	return nil
}

func (s *figureEnv) publishedOperation(ctx context.Context, p *proxies, i int, server reference, o operation) error {
	var env []string
	for entry := range environment(server.Env) {
		env = append(env, entry)
	}
	t, err := startSDK(ctx, append([]string{server.Command}, server.Args...), env...)
	if err != nil {
		return err
	}
	defer t.drop()
	var kept []float64
	took, err := s.latencies(ctx, p.all(), false, func(c *contender) httpRequest { return c.operations[i].request() })
	if err != nil {
		return err
	}
	for range s.o.Rounds {
		sample, err := s.loaded(ctx, &keepAlive{t, o.tool, o.arguments}, 1)
		if err != nil {
			return err
		}
		kept = append(kept, sample.P50/1000)
	}
	each, err := processEach(ctx, server, o, processesEach)
	if err != nil {
		return err
	}
	row := comparison{key: "operation/" + o.tool, part: "operation", what: o.name() + ", one process", unit: "ms", against: p.peerName(), theirs: p.of(took), ours: took[p.one]}
	s.compare(row)
	row.against, row.theirs, row.key = "a process for each call", each/1000, ""
	s.compare(row)
	row.against, row.theirs, row.shown = "a client that stays connected", median(kept), true
	s.compare(row)
	row = comparison{part: "operation", what: o.name() + ", three processes", unit: "ms", against: p.peerName(), theirs: p.of(took), ours: took[p.three]}
	if o.tool == toolName {
		row.share = threeShare
	}
	s.compare(row)
	return nil
}

// publishedLoad runs the six operations in turn on each proxy, with 1 to 50 concurrent calls.
func (s *figureEnv) publishedLoad(ctx context.Context, p *proxies) error {
	peaks := map[*contender]float64{}
	for _, lanes := range []int{1, 5, 10, 20, memoryLanes} {
		rates, tails := map[*contender][]float64{}, map[*contender][]float64{}
		for range s.o.Rounds {
			for _, c := range p.all() {
				var requests []httpRequest
				for i := range c.operations {
					requests = append(requests, c.operations[i].request())
				}
				m, err := c.mix(false, requests...)
				if err != nil {
					return err
				}
				peak := watchMemory(c)
				sample, err := s.loaded(ctx, m, lanes)
				if most := peak(); lanes == memoryLanes {
					peaks[c] = max(peaks[c], most)
				}
				if err != nil {
					return err
				}
				rates[c] = append(rates[c], sample.Rate)
				tails[c] = append(tails[c], sample.P90/1000)
			}
		}
		for _, c := range []*contender{p.one, p.three} {
			what := fmt.Sprintf("c=%d, %s", lanes, c.name)
			s.compare(comparison{key: fmt.Sprintf("load/%d/rate", lanes), part: "mixed load", what: what, unit: "calls/s", more: true, against: p.peerName(), theirs: median(rates[p.peer]), ours: median(rates[c])})
			s.compare(comparison{key: fmt.Sprintf("load/%d/p90", lanes), part: "mixed load", what: what + ", p90", unit: "ms", against: p.peerName(), theirs: median(tails[p.peer]), ours: median(tails[c])})
		}
	}
	s.compareMemory("at c=50", "rss/load", loadedMost, p, peaks[p.one], peaks[p.peer])
	return nil
}

// watchMemory watches the memory of a proxy until the returned function is called, which
// returns the maximum.
func watchMemory(c *contender) func() float64 {
	var over atomic.Bool
	most := make(chan float64)
	go func() {
		peak := 0.0
		for !over.Load() {
			peak = max(peak, c.memory())
			time.Sleep(memoryLookEvery)
		}
		most <- peak
	}()
	return func() float64 { over.Store(true); return <-most }
}

// publishedEndpoints measures the requests that a client makes in addition to calls.
func (s *figureEnv) publishedEndpoints(ctx context.Context, p *proxies) error {
	for _, path := range []string{"/health", "/servers", "/servers/filesystem/tools", "/servers/everything/prompts", "/servers/everything/resources"} {
		took, err := s.latencies(ctx, p.all(), false, func(*contender) httpRequest { return httpRequest{method: "GET", path: path} })
		if err != nil {
			return fmt.Errorf("GET %s: %w", path, err)
		}
		s.compare(comparison{key: "endpoint" + path, part: "endpoint", what: "GET " + path, unit: "ms", against: p.peerName(), theirs: p.of(took), ours: took[p.one]})
	}
	return nil
}

// publishedRisk measures a call of each risk level.
func publishedRisk(ctx context.Context, s *figureEnv) (err error) {
	plain, held := &proxies{}, &proxies{}
	defer func() { err = errors.Join(err, plain.close(), held.close()) }()
	for level, p := range map[int]*proxies{1: plain, 2: held} {
		if p.one, err = s.contend(ctx, AllInOne, level); err != nil {
			return err
		}
		if s.o.MCPBridge == "" {
			continue
		}
		if p.peer, err = s.contend(ctx, mcpBridge, level); err != nil {
			return err
		}
	}
	echo := func(c *contender) httpRequest { return c.operations[0].request() }
	low, err := s.latencies(ctx, plain.all(), false, echo)
	if err != nil {
		return err
	}
	medium, err := s.latencies(ctx, held.all(), true, echo)
	if err != nil {
		return err
	}
	s.compare(comparison{key: "risk/low", part: "risk", what: "low: runs at once", unit: "ms", against: plain.peerName(), theirs: plain.of(low), ours: low[plain.one]})
	// The peer keeps held calls in memory and loses them when it ends. Ours are on disk, so
	// the extra time is not compared with the peer's.
	s.compare(comparison{key: "risk/confirmation", part: "risk", what: "medium: extra time of a confirmed call", unit: "ms", ours: medium[held.one] - low[plain.one], most: confirmMost})
	s.compare(comparison{part: "risk", what: "medium: a confirmed call", unit: "ms", against: held.peerName() + ", which keeps it in memory", theirs: held.of(medium), ours: medium[held.one], shown: true})
	s.compare(comparison{key: "risk/high", part: "risk", what: "high: in a container", unit: "ms", note: "it needs containers; see make sandboxes"})
	return nil
}

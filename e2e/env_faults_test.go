package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/e2e/trainer"
)

// ledger is a remote MCP server whose tool enter has a counted effect, and which outlives the
// workers that call it. The tool read returns the entries of the same session.
type ledger struct {
	url    string
	server *mcp.Server
	mu     sync.Mutex
	times  map[string]int
	of     map[string][]string // by session
	read   map[string]int      // calls of the tool read, by path of the URL
}

type ledgerEntry struct {
	ID string `json:"id"`
}

func startLedger(t *testing.T) *ledger {
	t.Helper()
	l := &ledger{times: make(map[string]int), of: make(map[string][]string), read: make(map[string]int)}
	s := mcp.NewServer(&mcp.Implementation{Name: "ledger", Version: "1"}, nil)
	l.server = s
	mcp.AddTool(s, &mcp.Tool{Name: "read", Description: "Shows what was entered."}, func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.read[r.Extra.Header.Get(ledgerPath)]++
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Join(l.of[r.Session.ID()], " ")}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "enter", Description: "Enters an id."}, func(ctx context.Context, r *mcp.CallToolRequest, in ledgerEntry) (*mcp.CallToolResult, any, error) {
		l.mu.Lock()
		l.times[in.ID]++
		l.of[r.Session.ID()] = append(l.of[r.Session.ID()], in.ID)
		l.mu.Unlock()
		select { // so that a kill hits calls in progress
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.ID}}}, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set(ledgerPath, r.URL.Path)
		handler.ServeHTTP(w, r)
	}))
	l.url = server.URL
	t.Cleanup(func() {
		for session := range s.Sessions() { // otherwise those of killed workers would remain
			_ = session.Close()
		}
		server.CloseClientConnections()
		server.Close()
	})
	return l
}

// ledgerPath is the header in which the tools of the ledger see the path of a request.
const ledgerPath = "Ledger-Path"

const ledgerFile = `
environments:
  ledger:
    tools: ["ledger/*"]
    isolation: session
    limits: {steps: 1000, idle: 1m}
    tasks_file: tasks.jsonl
    reward: {weights: {selection: 0, format: 0, execution: 1}}
`

// TestAWorkerThatIsKilledMasksItsEpisodesAndNoOthers kills one of two workers in the middle of
// episodes, in several runs.
func TestAWorkerThatIsKilledMasksItsEpisodesAndNoOthers(t *testing.T) {
	runs := 1
	if measured() {
		runs = 50
	}
	l := startLedger(t)
	nats := startNATS(t, t.TempDir())
	servers := serversFile(t, map[string]entry{"ledger": {Type: "http", URL: l.url, RiskLevel: 1}})
	worker := setup{nats: nats.url, servers: servers}
	startWorker(t, worker) // this one is not killed
	worker.servers = serversFile(t, map[string]entry{"ledger": {Type: "http", URL: l.url + "/victim", RiskLevel: 1}})
	dir := t.TempDir()
	write(t, filepath.Join(dir, "env.yaml"), ledgerFile)
	write(t, filepath.Join(dir, "tasks.jsonl"), `{"question":"Enter something.","expected":["enter"]}`)
	e := &environments{process: start(t, program{path: filepath.Join(bin(t), "callyard"),
		args: []string{"env", "--environments", filepath.Join(dir, "env.yaml"), "--nats", nats.url, "--listen", "127.0.0.1:0", "--data", filepath.Join(dir, "data")}})}
	e.url = e.says(t, `environments are served at (http://\S+):`)[1]
	masked, whole, slowest := 0, 0, time.Duration(0)
	for run := range runs {
		victim := startWorker(t, worker)
		victim.says(t, `session ready.*"server":"ledger"`)
		e.eventually(t, soon, "the second worker", func() error {
			if n := e.metric(t, "callyard_workers"); n != 2 {
				return fmt.Errorf("there are %v workers", n)
			}
			return nil
		})
		// The environment may know the worker, and not yet that its server is ready.
		before := l.reads("/victim")
		e.eventually(t, soon, "an episode at the second worker", func() error {
			if err := readOnce(t.Context(), e); err != nil {
				return err
			}
			if l.reads("/victim") == before {
				return errors.New("all were at the first")
			}
			return nil
		})
		r := l.run(t, e, run, victim)
		masked, whole, slowest = masked+r.masked, whole+r.whole, max(slowest, r.slowest)
		if r.masked == 0 {
			t.Errorf("run %d: no episode was masked, and %d ended well", run, r.whole)
		}
		if run == runs-1 {
			break
		}
		e.eventually(t, soon, "the end of the second worker", func() error {
			if n := e.metric(t, "callyard_workers"); n != 1 {
				return fmt.Errorf("there are %v workers", n)
			}
			return nil
		})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, n := range l.times {
		if n != 1 {
			t.Errorf("%s was entered %d times", id, n)
		}
	}
	if slowest > time.Minute {
		t.Errorf("an episode hung for %v", slowest)
	}
	t.Logf("%d runs with a killed worker: %d episodes masked, %d with the whole reward, %d effects, none twice; the slowest step took %v", runs, masked, whole, len(l.times), slowest.Round(time.Millisecond))
}

// reads returns the number of calls of the tool read with that path.
func (l *ledger) reads(path string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.read[path]
}

// newEpisode begins an episode. The caller closes the client.
func newEpisode(ctx context.Context, e *environments) (*trainer.Conn, error) {
	c, err := trainer.Dial(ctx, e.url)
	if err != nil {
		return nil, err
	}
	if _, err := c.Reset(nil); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// readOnce plays an episode with one call.
func readOnce(ctx context.Context, e *environments) error {
	c, err := newEpisode(ctx, e)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Call("read", map[string]any{}); err != nil {
		return err
	}
	_, err = c.Call("finish", map[string]any{})
	return err
}

// faulted counts the ends of the episodes of a run.
type faulted struct {
	mu            sync.Mutex
	masked, whole int
	slowest       time.Duration // the slowest step
}

// run plays episodes until some time after the victim was killed.
func (l *ledger) run(t *testing.T, e *environments, run int, victim *workerProcess) *faulted {
	t.Helper()
	f := &faulted{}
	stop, begun := make(chan struct{}), make(chan struct{}, 16)
	var work sync.WaitGroup
	for i := range cap(begun) {
		work.Go(func() {
			if err := l.episode(t.Context(), f, e, fmt.Sprintf("%d-%d", run, i), begun, stop); err != nil {
				t.Errorf("run %d, episode %d: %v", run, i, err)
			}
		})
	}
	for range cap(begun) {
		<-begun
	}
	victim.kill9(t)
	time.AfterFunc(300*time.Millisecond, func() { close(stop) })
	work.Wait()
	return f
}

// episode enters IDs until stop, or until it is masked.
func (l *ledger) episode(ctx context.Context, f *faulted, e *environments, name string, begun chan<- struct{}, stop <-chan struct{}) error {
	said := sync.OnceFunc(func() { begun <- struct{}{} })
	defer said()
	c, err := newEpisode(ctx, e)
	if err != nil {
		return err
	}
	defer c.Close()
	for n := 0; ; n++ {
		tool, arguments := "enter", map[string]any{"id": fmt.Sprintf("%s-%d", name, n)}
		select {
		case <-stop:
			tool, arguments = "finish", map[string]any{}
		default:
		}
		began := time.Now()
		seen, err := c.Call(tool, arguments)
		took := time.Since(began)
		if err != nil {
			return err
		}
		f.mu.Lock()
		f.slowest = max(f.slowest, took)
		f.mu.Unlock()
		if n == 2 {
			said()
		}
		if !seen.Done {
			if seen.Observation.Error != nil {
				return fmt.Errorf("step %d: %+v", n, seen.Observation.Error)
			}
			continue
		}
		return f.end(seen)
	}
}

// end counts the end of an episode, which has the whole reward, or is masked and has none.
func (f *faulted) end(seen *trainer.Seen) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case seen.Metadata.Masked && seen.Reward == nil && (seen.Metadata.FailureKind == "worker-lost" || seen.Metadata.FailureKind == "outcome-unknown"):
		f.masked++
	case !seen.Metadata.Masked && seen.Reward != nil && *seen.Reward == 1:
		f.whole++
	default:
		return errors.New(describe(seen))
	}
	return nil
}

func describe(seen *trainer.Seen) string {
	reward := "null"
	if seen.Reward != nil {
		reward = fmt.Sprint(*seen.Reward)
	}
	return fmt.Sprintf("it ended with the reward %s, masked %v, %s, %+v", reward, seen.Metadata.Masked, seen.Metadata.FailureKind, seen.Observation.Error)
}

// TestEpisodesHaveSeparateSessionsAtRemoteServers runs concurrent episodes at a remote server
// that keeps state by session. None sees another's state, and the sessions end with the episodes.
func TestEpisodesHaveSeparateSessionsAtRemoteServers(t *testing.T) {
	l := startLedger(t)
	e := startEnv(t, serversFile(t, map[string]entry{"ledger": {Type: "http", URL: l.url, RiskLevel: 1}}),
		map[string]string{"env.yaml": ledgerFile, "tasks.jsonl": `{"question":"Enter something.","expected":["enter"]}`})
	before := l.sessions()
	runCalls(16, 32, func(n int) error {
		c, err := trainer.Dial(t.Context(), e.url)
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.Reset(nil); err != nil {
			return err
		}
		var own []string
		for i := range 3 {
			own = append(own, fmt.Sprintf("nonce-%d-%d", n, i))
			if _, err := c.Call("enter", map[string]any{"id": own[i]}); err != nil {
				return err
			}
			seen, err := c.Call("read", map[string]any{})
			if err != nil {
				return err
			}
			if want := fmt.Sprintf("%q", strings.Join(own, " ")); !strings.Contains(string(seen.Observation.Result), want) {
				return fmt.Errorf("it entered %s and reads %s", want, seen.Observation.Result)
			}
		}
		seen, err := c.Call("finish", map[string]any{})
		if err != nil {
			return err
		}
		return (&faulted{}).end(seen)
	}).none(t, "the episodes")
	e.eventually(t, soon, "the sessions of episodes", func() error {
		if now := l.sessions(); now != before {
			return fmt.Errorf("there are %d sessions, and were %d", now, before)
		}
		return nil
	})
}

func (l *ledger) sessions() (n int) {
	for range l.server.Sessions() {
		n++
	}
	return n
}

// TestASessionIsRefusedAtAServerThatCannotKeepState uses a process that all callers share in an
// environment with a session for each episode.
func TestASessionIsRefusedAtAServerThatCannotKeepState(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "env.yaml"), strings.ReplaceAll(ledgerFile, "ledger/*", "scripted/*"))
	write(t, filepath.Join(dir, "tasks.jsonl"), `{"question":"Echo something."}`)
	p := start(t, program{path: filepath.Join(bin(t), "callyard"), args: []string{"env", "--environments", filepath.Join(dir, "env.yaml"), "--data", filepath.Join(dir, "data"),
		"--listen", "127.0.0.1:0", "--servers", serversFile(t, map[string]entry{"scripted": scripted("echo")})}})
	if code := p.wait(t, 30*time.Second); code == 0 || !strings.Contains(p.out.String(), "isolation process") {
		t.Errorf("exit %d: %s", code, p.out.String())
	}
}

package cli

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/agent"
	"github.com/callyard/callyard/internal/agent/modeltest"
)

// stalledTerminal is a terminal at which some lines are typed, and then no more.
type stalledTerminal struct {
	lines   []string
	waiting func()        // called when no more input follows
	left    chan struct{} // ends the read, like the end of the process
}

func (s *stalledTerminal) Read(p []byte) (int, error) {
	if len(s.lines) == 0 {
		s.waiting()
		<-s.left
		return 0, io.EOF
	}
	n := copy(p, s.lines[0]+"\n")
	s.lines = s.lines[1:]
	return n, nil
}

// TestAnInterruptEndsACommandThatWaitsForInput interrupts the agent and a question of approve while
// they wait for input.
func TestAnInterruptEndsACommandThatWaitsForInput(t *testing.T) {
	y := openTestFabric(t)
	server := modeltest.New(modeltest.Script{{Text: "Hello."}, calls("delete a"), {Text: "Done."}})
	api := httptest.NewServer(server)
	defer api.Close()
	for _, c := range []struct {
		name    string
		lines   []string
		person  bool
		says    string
		approve bool
	}{
		{name: "a prompt on standard input", says: "Interrupted."},
		{name: "the first prompt", person: true, says: "Interrupted."},
		{name: "the next prompt", person: true, lines: []string{"Hello?"}, says: "Continue with `callyard agent --resume"},
		{name: "a decision", person: true, lines: []string{"Delete it."}, says: "Continue with `callyard agent --resume"},
		{name: "a confirmation", approve: true, says: "Interrupted."},
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		in := &stalledTerminal{lines: c.lines, waiting: interrupt, left: make(chan struct{})}
		var stdout, stderr bytes.Buffer
		cl := &client{in: in, out: screen{w: &stdout}, note: screen{w: &stderr}}
		var err error
		switch {
		case c.approve:
			err = confirmed(ctx, cl, "Run it?", "Not approved.")
		case c.person:
			err = y.converseAs(ctx, t, cl, api.URL)
		default:
			root := rootCommand()
			root.SetArgs([]string{"agent", "--url", y.url, "--model", "anthropic:test", "--base-url", api.URL, "--transcript", filepath.Join(t.TempDir(), "t.jsonl")})
			root.SetOut(&stdout)
			root.SetErr(&stderr)
			root.SetIn(in)
			err = root.ExecuteContext(ctx)
		}
		close(in.left)
		interrupt()
		if exitCode(err) != exitInterrupted || err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v (%d); %s%s %v", c.name, err, exitCode(err), &stdout, &stderr, server.Refused())
		}
	}
}

// converseAs runs a conversation with the client's person, as at a terminal.
func (y *testFabric) converseAs(ctx context.Context, t *testing.T, c *client, api string) error {
	t.Helper()
	o := &agentOptions{baseURL: api, output: "text", confirm: "ask", jsonWidth: 100, transcript: filepath.Join(t.TempDir(), "t.jsonl"), model: "anthropic:test"}
	transcript, err := o.open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = transcript.Close() }()
	m, err := o.openModel(o.model)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	c.base, c.http = y.url, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if err := c.connect(); err != nil {
		t.Fatal(err)
	}
	person := newAgentPerson(c, o)
	person.terminal = true
	return o.converse(ctx, &agent.Agent{
		Model: m, Wire: m.Wire, Fabric: &agentFabric{c: c, format: string(m.Wire.Format())}, Person: person, Tools: &agent.Tools{}, Transcript: transcript, System: agentSystem, Stream: true,
	}, person, c)
}

// TestAnInterruptEndsACommandThatReadsStandardInput interrupts commands with "-" before any input
// arrives.
func TestAnInterruptEndsACommandThatReadsStandardInput(t *testing.T) {
	plainEnvironment(t)
	for _, args := range [][]string{
		{"call", "demo", "add", "-"}, {"check", "--require", "-"}, {"sets", "put", "mine", "-"}, {"servers", "add", "mine", "--entry", "-"}, {"state", "import", "-"},
		{"tools", "convert", "--from", "openai", "--to", "anthropic", "-"},
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		in := &stalledTerminal{waiting: interrupt, left: make(chan struct{})}
		root := rootCommand()
		root.SetArgs(args)
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		root.SetIn(in)
		err := root.ExecuteContext(ctx)
		close(in.left)
		interrupt()
		if exitCode(err) != exitInterrupted || err.Error() != "Interrupted." {
			t.Errorf("%v: %v (%d)", args, err, exitCode(err))
		}
	}
}

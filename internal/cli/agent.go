package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
	"golang.org/x/net/http/httpguts"

	"github.com/callyard/callyard/internal/agent"
	"github.com/callyard/callyard/internal/agent/model"
	"github.com/callyard/callyard/internal/kit/bom"
	"github.com/callyard/callyard/internal/kit/shellwords"
)

// Exit codes of the agent: exitHeld if a call is still held at the end of the session, exitBudget
// if the session used up its budget.
const (
	exitHeld   = 5
	exitBudget = 6
)

// agentOptions holds the command line of agent.
type agentOptions struct {
	prompt               string
	print                bool
	model, baseURL       string
	headers              []string
	servers, tools, deny []string
	selection            string
	toolTokens           int
	limits               agent.Limits
	prices               string
	confirm              string
	resume, transcript   string
	resumeLast, fork     bool
	output               string
	hideJSON, noStream   bool
	plain                bool
	jsonWidth            int
	mcpURL, system       string
	mcpPort              int
	maxOutput            int
}

const agentLong = "agent lets a language model answer a prompt with the tools of a running Callyard. Without PROMPT it is a conversation at the terminal; " +
	"with -p, or where standard input is no terminal, it answers once.\n\n" +
	"The model is PROVIDER:NAME with the provider openai, responses, anthropic, gemini, ollama, llamacpp or compatible. The key is in the provider's usual variable: " +
	"OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, OLLAMA_API_KEY, LLAMA_API_KEY, or MODEL_API_KEY for compatible.\n\n" +
	"Calls that must be confirmed are shown with all of their arguments. Without a terminal they are denied; calls that approvers decide stay held.\n\n" +
	"Exit code: 0 the model answered, 1 it stopped without an answer, 2 the command line is invalid, 3 a call was denied or refused, " +
	"4 the model or Callyard cannot be reached, 5 a call is still held, 6 a budget is spent, 130 interrupted."

func agentCommand() *cobra.Command {
	var o agentOptions
	cmd := &cobra.Command{
		Use:     "agent [PROMPT]",
		Short:   "Let a language model use the tools",
		Long:    agentLong,
		Example: "  callyard agent --model anthropic:claude-sonnet-4-5 'What is 2 + 40? Use the demo server.'\n  callyard agent --model ollama:qwen3 --confirm wait -p 'Delete the old reports' --output json\n  callyard agent --continue",
		Args:    takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.prompt = args[0]
			}
			if cmd.Flag("json").Changed {
				o.output = "json"
			}
			return runAgent(cmd, &o)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.print, "print", "p", false, "answer once and exit, even at a terminal")
	f.StringVar(&o.model, "model", "", "the model as PROVIDER:NAME (CALLYARD_MODEL)")
	f.StringVar(&o.baseURL, "base-url", "", "address of the model's API in place of the provider's, such as http://127.0.0.1:8000/v1")
	f.StringArrayVar(&o.headers, "header", nil, "header for the model's API, as Name: value; can be repeated")
	f.StringSliceVar(&o.servers, "servers", nil, "only tools of these servers")
	f.StringSliceVar(&o.tools, "tools", nil, "only these tools: patterns of SERVER/TOOL or of names for the model, such as files__*")
	f.StringSliceVar(&o.deny, "not-tools", nil, "exclude these tools: patterns in the same form")
	f.StringVar(&o.selection, "select", "auto", "tools for the model: all, search (the best for the prompt, and find_tools), or auto (all if they fit --tool-tokens)")
	f.IntVar(&o.toolTokens, "tool-tokens", 8000, "estimated tokens of tool definitions in the first request")
	f.IntVar(&o.limits.Steps, "max-steps", 20, "requests to the model for each prompt; 0 sets no limit")
	f.IntVar(&o.limits.Calls, "max-calls", 100, "tool calls for each prompt; 0 sets no limit")
	f.Int64Var(&o.limits.Tokens, "max-tokens", 0, "tokens of requests and answers for each prompt; 0 sets no limit")
	f.Float64Var(&o.limits.Cost, "max-cost", 0, "cost for each prompt, in the unit of --prices; 0 sets no limit")
	f.IntVar(&o.limits.Repeats, "max-repeat", 3, "calls of the same tool with the same arguments for each prompt; 0 sets no limit")
	durationVar(f, &o.limits.Time, "time", 10*time.Minute, "time for each prompt, without the time in which people decide; 0 sets no limit")
	f.StringVar(&o.prices, "prices", "", `file with the prices of models for a million tokens: {"PROVIDER:NAME": {"input": 3, "cached_input": 0.3, "output": 15}}`)
	f.StringVar(&o.confirm, "confirm", "", "calls that must be confirmed: ask (needs a terminal), deny, or wait for approvers (default: ask at a terminal, else deny)")
	f.StringVar(&o.resume, "resume", "", "continue the session with this id, or in this file")
	f.BoolVar(&o.resumeLast, "continue", false, "continue the latest session")
	f.BoolVar(&o.fork, "fork", false, "with --resume or --continue: continue in a copy")
	f.StringVar(&o.transcript, "transcript", "", "file of the transcript (default: a new file in the directory callyard/agent of XDG_STATE_HOME)")
	f.StringVarP(&o.output, "output", "o", "text", "output format: text, json or stream-json")
	f.BoolVar(&o.hideJSON, "hide-json", false, "do not show the arguments and results of calls")
	f.IntVar(&o.jsonWidth, "json-width", 100, "columns of JSON that is shown")
	f.BoolVar(&o.noStream, "no-stream", false, "do not stream the model's answers")
	f.BoolVar(&o.plain, "plain", false, "have the model write its calls as JSON, for models without tool calls")
	f.StringVar(&o.system, "system", "", "instructions for the model in place of the default")
	f.IntVar(&o.maxOutput, "max-output", 0, "tokens of one answer of the model (default: the provider's)")
	f.StringVar(&o.mcpURL, "mcp-url", "", "another name of --url")
	f.IntVar(&o.mcpPort, "mcp-port", 0, "port of Callyard, with --mcp-url or on this machine")
	offer(cmd, "select", "auto", "all", "search")
	offer(cmd, "confirm", "ask", "deny", "wait")
	offer(cmd, "output", "text", "json", "stream-json")
	return cmd
}

// agentSystem is the system prompt.
const agentSystem = "You answer with the help of tools. Call tools when you need facts or must act; several calls in one answer run at the same time. " +
	"When a call is denied, do not try to reach the same result another way; say what was not done. When you have what you need, answer without calling tools."

func runAgent(cmd *cobra.Command, o *agentOptions) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	c, err := clientFrom(cmd)
	if err != nil {
		return err
	}
	defer c.close()
	transcript, err := o.open()
	if err != nil {
		return err
	}
	defer func() { _ = transcript.Close() }() // every line is synced
	// A new transcript uses the model of CALLYARD_MODEL.
	client, err := o.openModel(cmp.Or(o.model, transcript.Model))
	if err != nil {
		return err
	}
	defer client.Close()
	if f := transcript.Format(); f != "" && f != client.Wire.Format() {
		return fail(exitUsage, "The session was started with %s, and %s uses another message format: continue the session with a model of the same API.", transcript.Model, client.Spec)
	}
	person := newAgentPerson(c, o)
	a := &agent.Agent{
		Model: client, Wire: client.Wire, Loose: client.Loose, Plain: o.plain, Fabric: &agentFabric{c: c, format: string(client.Wire.Format()), servers: o.servers}, Person: person,
		Tools:  &agent.Tools{Servers: o.servers, Allow: o.tools, Deny: o.deny, Select: map[string]agent.Selection{"auto": agent.SelectAuto, "all": agent.SelectAll, "search": agent.SelectSearch}[o.selection], Budget: o.toolTokens},
		Limits: o.limits, Transcript: transcript, System: cmp.Or(o.system, agentSystem), Stream: !o.noStream, MaxOutput: o.maxOutput,
	}
	return o.converse(cmd.Context(), a, person, c)
}

// converse runs the prompt, or each line of the terminal, until the session ends.
func (o *agentOptions) converse(ctx context.Context, a *agent.Agent, person *agentPerson, c *client) error {
	once := o.print || o.prompt != "" || !person.terminal
	if o.prompt == "" && once && !a.Transcript.Interrupted() {
		text, err := untilInterrupt(ctx, func() ([]byte, error) { return io.ReadAll(c.in) })
		if ctx.Err() != nil {
			return o.interrupted(a)
		}
		if err != nil {
			return fail(exitUsage, "The prompt cannot be read from standard input: %w", err)
		}
		if o.prompt = strings.TrimSpace(string(text)); o.prompt == "" {
			return fail(exitUsage, "There is no prompt: pass it as an argument or on standard input.")
		}
	}
	// A single prompt also continues an interrupted session, so that it produces one report.
	if a.Transcript.Interrupted() && !(once && o.prompt != "") {
		err := o.ask(ctx, a, person, "")
		if once {
			return continued(a, err)
		}
		if err != nil {
			return err
		}
	}
	if once {
		return continued(a, o.ask(ctx, a, person, o.prompt))
	}
	for {
		prompt, err := person.prompt(ctx)
		if ctx.Err() != nil {
			return o.interrupted(a)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if prompt == "" {
			continue
		}
		err = o.ask(ctx, a, person, prompt)
		var e *exitError
		switch {
		case err == nil:
		case errors.As(err, &e) && e.code != exitInterrupted && e.code != exitHeld:
			showError(c.note.w, err) // the conversation continues
		default:
			return err
		}
	}
}

// interrupted returns the error for an interrupt that arrives between prompts.
func (o *agentOptions) interrupted(a *agent.Agent) error {
	if len(a.Transcript.Messages()) == 0 {
		return fail(exitInterrupted, "Interrupted.") // there is nothing to continue
	}
	return fail(exitInterrupted, "Interrupted. Continue with `callyard agent --resume %s`.", resumeArgument(a.Transcript.Path()))
}

// ask runs one prompt and reports the outcome.
func (o *agentOptions) ask(ctx context.Context, a *agent.Agent, person *agentPerson, prompt string) error {
	report, err := a.Ask(ctx, prompt)
	if err != nil {
		return agentFault(ctx, err, resumeArgument(a.Transcript.Path()))
	}
	if err := person.report(report, resumeArgument(a.Transcript.Path())); err != nil {
		return err
	}
	return exitOf(report)
}

// continued adds to the error that ended a single prompt how its session is continued. The error of
// an interrupt says so already.
func continued(a *agent.Agent, err error) error {
	code := exitCode(err)
	if err == nil || err.Error() == "" || code == exitInterrupted || code == exitUsage || !a.Transcript.Interrupted() {
		return err
	}
	return fail(code, "%w\nContinue with `callyard agent --resume %s`.", err, resumeArgument(a.Transcript.Path()))
}

// agentFault wraps an error with its exit code. session is the value of --resume for the session.
func agentFault(ctx context.Context, err error, session string) error {
	var e *exitError
	var api *model.Error
	switch {
	case ctx.Err() != nil: // an interrupted request to Callyard does not say how to continue
		return fail(exitInterrupted, "Interrupted. Continue with `callyard agent --resume %s`.", session)
	case errors.As(err, &e):
		return err
	case errors.Is(err, agent.ErrNoTools):
		return fail(exitUsage, "No tool matches --tools and --not-tools: `callyard tools` lists the tools. A pattern is SERVER/TOOL, such as files/*, or a name for the model.")
	case errors.As(err, &api) && api.Status == http.StatusUnauthorized:
		return fail(exitUnreachable, "%w. Check the key.", err)
	}
	return fail(exitUnreachable, "%w", err)
}

// exitOf returns the exit code of a session. A denied or held call is never a success.
func exitOf(r *agent.Report) error {
	switch {
	case r.Stop == agent.HeldCall:
		return ended(exitHeld)
	case slices.ContainsFunc(r.Calls, func(c agent.CallResult) bool { return c.State == "denied" || c.State == "refused" || c.IsRefusal() }):
		return ended(exitRefused)
	case r.Stop == agent.Budget:
		return ended(exitBudget)
	case r.Stop != agent.Answered:
		return ended(exitToolError)
	}
	return nil
}

// check validates the command line.
func (o *agentOptions) check(cmd *cobra.Command) error {
	err := cmp.Or(
		oneOf("select", o.selection, "auto", "all", "search"),
		oneOf("confirm", o.confirm, "", "ask", "deny", "wait"),
		oneOf("output", o.output, "text", "json", "stream-json"),
	)
	if err != nil {
		return err
	}
	for _, p := range append(slices.Clone(o.tools), o.deny...) {
		if _, err := filepath.Match(p, ""); err != nil {
			return fail(exitUsage, "The pattern %q is not valid: %w", p, err)
		}
	}
	if o.resume != "" && o.resumeLast {
		return fail(exitUsage, "--resume and --continue cannot be combined.")
	}
	if o.transcript != "" && (o.resume != "" || o.resumeLast) {
		return fail(exitUsage, "--transcript is for new sessions: it cannot be used with --resume or --continue.")
	}
	if o.fork && o.resume == "" && !o.resumeLast {
		return fail(exitUsage, "--fork needs --resume or --continue.")
	}
	if o.confirm == "ask" && !isTerminal(cmd.InOrStdin()) {
		return fail(exitUsage, "--confirm ask needs a terminal: use deny, or wait for approvers.")
	}
	if min(o.toolTokens, o.maxOutput, o.jsonWidth) < 0 {
		return fail(exitUsage, "--tool-tokens, --max-output and --json-width must not be negative.")
	}
	l := &o.limits
	if min(float64(l.Steps), float64(l.Calls), float64(l.Tokens), l.Cost, float64(l.Repeats), float64(l.Time)) < 0 {
		return fail(exitUsage, "A budget must not be negative: 0 sets no limit.")
	}
	if o.limits.Cost > 0 && o.prices == "" {
		return fail(exitUsage, "--max-cost needs --prices: no prices are built in.")
	}
	if (o.mcpURL != "" || o.mcpPort != 0) && !cmd.Flag("url").Changed {
		address, err := mcpAddress(cmp.Or(o.mcpURL, "http://127.0.0.1"), o.mcpPort)
		if err != nil {
			return err
		}
		return cmd.Flag("url").Value.Set(address)
	}
	return nil
}

// mcpAddress returns the address of --mcp-url with its port replaced by --mcp-port. If port is 0,
// the address is unchanged.
func mcpAddress(address string, port int) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "", fail(exitUsage, "--mcp-url must be an address such as http://127.0.0.1:3000, not %q.", address)
	}
	if port < 0 || port > 65535 {
		return "", fail(exitUsage, "--mcp-port must be a port from 1 to 65535, not %d.", port)
	}
	if port != 0 {
		u.Host = net.JoinHostPort(u.Hostname(), strconv.Itoa(port))
	}
	return u.String(), nil
}

// sessionsFolder returns the default directory of transcripts, used without --transcript.
func sessionsFolder() string {
	return filepath.Join(cmp.Or(os.Getenv("XDG_STATE_HOME"), filepath.Join(os.Getenv("HOME"), ".local", "state")), "callyard", "agent")
}

// isSessionID reports whether --resume treats the text as a session id instead of a file.
func isSessionID(text string) bool {
	return !strings.ContainsRune(text, filepath.Separator) && !strings.HasSuffix(text, ".jsonl")
}

// resumeArgument returns the value of --resume for a transcript, quoted for a shell.
func resumeArgument(path string) string {
	switch id := strings.TrimSuffix(filepath.Base(path), ".jsonl"); {
	case filepath.Dir(path) == filepath.Clean(sessionsFolder()) && isSessionID(id):
		path = id
	case isSessionID(path):
		path = "." + string(filepath.Separator) + path
	}
	return shellwords.Quote(path)
}

// open opens the transcript.
func (o *agentOptions) open() (*agent.Transcript, error) {
	dir := sessionsFolder()
	path := o.resume
	var err error
	switch {
	case o.resumeLast:
		path, err = agent.Latest(dir)
	case path != "" && isSessionID(path):
		path = filepath.Join(dir, path+".jsonl")
	case path == "" && o.transcript != "":
		_, missing := os.Stat(o.transcript)
		if missing == nil {
			return nil, fail(exitUsage, "The transcript %s exists: continue it with --resume, or name another file.", o.transcript)
		}
	}
	if err != nil {
		return nil, fail(exitUsage, "%w", err)
	}
	var t *agent.Transcript
	if path == "" {
		t, err = agent.NewTranscript(cmp.Or(o.transcript, dir+string(filepath.Separator)), cmp.Or(o.model, os.Getenv("CALLYARD_MODEL")))
	} else if t, err = agent.OpenTranscript(path); err == nil && o.fork {
		old := t
		t, err = old.Fork()
		_ = old.Close() // nothing was written
	}
	if err != nil {
		return nil, fail(exitUsage, "%w", err)
	}
	return t, nil
}

// openModel returns a client of the model, with its prices. It sends no request.
func (o *agentOptions) openModel(name string) (*agentModel, error) {
	if name == "" {
		return nil, fail(exitUsage, "There is no model: pass --model PROVIDER:NAME, or set CALLYARD_MODEL.")
	}
	spec, err := model.ParseSpec(name)
	if err != nil {
		return nil, fail(exitUsage, "%w", err)
	}
	headers := make(map[string]string)
	for _, h := range o.headers {
		k, v, ok := strings.Cut(h, ":")
		k, v = strings.TrimSpace(k), strings.TrimSpace(v)
		if !ok || !httpguts.ValidHeaderFieldName(k) || !httpguts.ValidHeaderFieldValue(v) {
			return nil, fail(exitUsage, "--header must have the form Name: value, with a name of letters, digits and -, and a value on one line.")
		}
		headers[k] = v
	}
	m := &agentModel{http: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}}
	if m.Client, err = model.Open(spec, model.Options{BaseURL: o.baseURL, Getenv: os.Getenv, Headers: headers, HTTP: m.http}); err != nil {
		return nil, fail(exitUsage, "%w", err)
	}
	if o.prices == "" {
		return m, nil
	}
	text, err := os.ReadFile(o.prices)
	if err != nil {
		return nil, fail(exitUsage, "The prices cannot be read: %w", err)
	}
	var prices map[string]agent.Prices
	in := json.NewDecoder(bytes.NewReader(bom.Trim(text)))
	in.DisallowUnknownFields() // a misspelled price would count as 0, and --max-cost would limit nothing
	if err = in.Decode(&prices); err == nil && in.More() {
		err = errors.New("there is more than one value")
	}
	if err != nil {
		return nil, fail(exitUsage, "The prices in %s cannot be read: %w", o.prices, err)
	}
	p, ok := prices[spec.String()]
	if !ok {
		return nil, fail(exitUsage, "%s has no prices for %s.", o.prices, spec)
	}
	if p.Negative() {
		return nil, fail(exitUsage, "%s has a negative price for %s.", o.prices, spec)
	}
	o.limits.Prices = &p
	return m, nil
}

// agentModel is a model with its connections.
type agentModel struct {
	*model.Client
	http *http.Client
}

// Close closes the connections.
func (m *agentModel) Close() { m.http.CloseIdleConnections() }

// untilInterrupt reads standard input until the command is interrupted. A signal cannot abort the
// read, so the read continues in its goroutine until the process ends.
func untilInterrupt[T any](ctx context.Context, read func() (T, error)) (text T, err error) {
	type input struct {
		text T
		err  error
	}
	done := make(chan input, 1)
	go func() {
		text, err := read()
		done <- input{text, err}
	}()
	select {
	case got := <-done:
		return got.text, got.err
	case <-ctx.Done():
		return text, fail(exitInterrupted, "Interrupted.")
	}
}

// isTerminal reports whether the input is a terminal.
func isTerminal(in io.Reader) bool {
	f, ok := in.(*os.File)
	return ok && term.IsTerminal(f.Fd())
}

// lineReader reads lines from the terminal, one at a time.
type lineReader struct{ in *bufio.Reader }

func (l *lineReader) read() (string, error) {
	line, err := l.in.ReadString('\n')
	if err != nil && line == "" {
		return "", err
	}
	return strings.TrimSpace(line), nil
}

package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/sse"
	"github.com/callyard/callyard/pkg/schema"
)

// partTime bounds the goodbye.
const partTime = 2 * time.Second

// bridge passes the messages of one client on stdin and stdout to the MCP endpoint and
// back. Bodies are passed on byte for byte, except that line breaks between the tokens
// become spaces in messages to the client, because a line is a message.
type bridge struct {
	c    *client
	url  string
	note io.Writer

	writing sync.Mutex
	out     io.Writer

	mu      sync.Mutex
	running map[string]context.CancelFunc // requests of the modern era, by id
	session string
	version string // of the legacy era
	first   []byte // the client's initialize, to open the session again
	headers map[string][]mcpwire.ParamHeader
	work    sync.WaitGroup
}

func newBridge(c *client, server string, out, note io.Writer) *bridge {
	return &bridge{c: c, url: c.base + mountPath(server), out: out, note: note, running: make(map[string]context.CancelFunc), headers: make(map[string][]mcpwire.ParamHeader)}
}

// envelope is what the bridge reads of a message.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string                     `json:"name"`
		URI       string                     `json:"uri"`
		TaskID    string                     `json:"taskId"`
		RequestID json.RawMessage            `json:"requestId"`
		Arguments json.RawMessage            `json:"arguments"`
		Meta      map[string]json.RawMessage `json:"_meta"`
	} `json:"params"`
}

// modern returns the revision of a message of the modern era, "" for others.
func (m *envelope) modern() string {
	var version string
	if json.Unmarshal(m.Params.Meta[mcpwire.MetaProtocolVersion], &version) != nil || !mcpwire.IsModern(version) {
		return ""
	}
	return version
}

// run reads until stdin ends. What is under way then is ended.
func (b *bridge) run(ctx context.Context, in io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	lines := make(chan []byte)
	failed := make(chan error, 1)
	go func() { // it ends with stdin, and with the process at the latest: a read cannot be taken back
		defer close(lines)
		r := bufio.NewReader(in)
		for {
			line, err := r.ReadBytes('\n')
			if line = bytes.TrimSpace(line); len(line) > 0 {
				select {
				case lines <- line:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					failed <- err
				}
				return
			}
		}
	}()
	for open := true; open; {
		select {
		case line, ok := <-lines:
			if open = ok; ok {
				b.take(ctx, line)
			}
		case <-ctx.Done():
			open = false
		}
	}
	cancel()
	b.work.Wait()
	b.part()
	select {
	case err := <-failed:
		return fail(exitUsage, "Reading stdin failed: %w", err)
	default:
		return nil
	}
}

// take deals with one message of the client.
func (b *bridge) take(ctx context.Context, line []byte) {
	var m envelope
	if err := json.Unmarshal(line, &m); err != nil {
		b.fault(nil, mcpwire.CodeParse, "The line is not a JSON-RPC message.")
		return
	}
	version := m.modern()
	switch {
	case m.Method == mcpwire.NotifyCancelled && b.cancel(m.Params.RequestID):
		return
	case m.ID == nil || m.Method == "": // a notification, or an answer: in order
		b.exchange(ctx, line, &m, version)
		if m.Method == mcpwire.NotifyInitialized {
			b.work.Go(func() { b.follow(ctx) })
		}
	case m.Method == mcpwire.MethodInitialize:
		b.exchange(ctx, line, &m, "")
	default:
		ctx, end := context.WithCancel(ctx)
		if version != "" {
			b.mu.Lock()
			b.running[string(m.ID)] = end
			b.mu.Unlock()
		}
		b.work.Go(func() {
			defer func() {
				end()
				b.mu.Lock()
				delete(b.running, string(m.ID))
				b.mu.Unlock()
			}()
			b.exchange(ctx, line, &m, version)
		})
	}
}

// cancel hangs up a request of the modern era, which cancels it there.
func (b *bridge) cancel(id json.RawMessage) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	end := b.running[string(id)]
	if end != nil {
		end()
	}
	return end != nil
}

// exchange posts a message and writes the response.
func (b *bridge) exchange(ctx context.Context, body []byte, m *envelope, version string) {
	resp, err := b.post(ctx, body, m, version)
	if err == nil && resp.StatusCode == http.StatusNotFound && version == "" && m.Method != mcpwire.MethodInitialize && b.again(ctx) {
		_ = resp.Body.Close()
		resp, err = b.post(ctx, body, m, version)
	}
	if err != nil {
		if m.ID != nil && m.Method != "" && ctx.Err() == nil {
			b.fault(m.ID, mcpwire.CodeUnavailable, b.c.unreachable(ctx, err).Error())
		}
		return
	}
	defer func() { _ = resp.Body.Close() }()
	if id := resp.Header.Get(mcpwire.HeaderSessionID); m.Method == mcpwire.MethodInitialize && id != "" {
		b.opened(id, body)
	}
	if m.ID == nil || m.Method == "" {
		return
	}
	answered := b.pass(ctx, resp, m)
	if !answered && ctx.Err() == nil && resp.StatusCode != http.StatusAccepted {
		b.fault(m.ID, mcpwire.CodeUnavailable, fmt.Sprintf("%s did not answer the request (HTTP %d).", b.c.base, resp.StatusCode))
	}
}

// pass writes the messages of an answer; it returns false where there were none.
func (b *bridge) pass(ctx context.Context, resp *http.Response, m *envelope) bool {
	some := false
	write := func(text []byte) {
		some = true
		if m.Method == mcpwire.MethodInitialize {
			b.setVersion(text)
		}
		if m.Method == mcpwire.MethodListTools {
			b.learn(text)
		}
		b.write(text)
	}
	switch mediaType(resp.Header) {
	case mediaJSON:
		if text, err := io.ReadAll(resp.Body); err == nil && len(bytes.TrimSpace(text)) > 0 {
			write(text)
		}
	case mediaEvents:
		if err := readEvents(resp.Body, func(e sse.Event) error { write(e.Data); return nil }); err != nil && ctx.Err() == nil {
			b.say("the stream of an answer was interrupted: %v", err)
		}
	}
	return some
}

func (b *bridge) post(ctx context.Context, body []byte, m *envelope, version string) (*http.Response, error) {
	return b.send(ctx, http.MethodPost, body, version, func(r *http.Request) {
		if version == "" || m.ID == nil {
			return
		}
		r.Header.Set(mcpwire.HeaderMethod, m.Method)
		if name := cmp.Or(m.Params.Name, m.Params.URI, m.Params.TaskID); name != "" {
			r.Header.Set(mcpwire.HeaderName, mcpwire.EncodeHeader(name))
		}
		b.repeat(r, m)
	})
}

// send sends one request to the endpoint. version is that of the modern era, "" in the
// session; edit, if not nil, adds to the header.
func (b *bridge) send(ctx context.Context, method string, body []byte, version string, edit func(*http.Request)) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, b.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", mediaJSON)
	}
	b.head(r, version)
	if edit != nil {
		edit(r)
	}
	return b.c.http.Do(r)
}

// head sets what every request carries.
func (b *bridge) head(r *http.Request, version string) {
	r.Header.Set("Accept", mediaJSON+", "+mediaEvents)
	r.Header.Set("User-Agent", "callyard mcp stdio")
	if b.c.key != "" {
		r.Header.Set("Authorization", "Bearer "+b.c.key)
	}
	b.mu.Lock()
	session, legacy := b.session, b.version
	b.mu.Unlock()
	if version != "" {
		r.Header.Set(mcpwire.HeaderProtocolVersion, version)
		return
	}
	if session != "" {
		r.Header.Set(mcpwire.HeaderSessionID, session)
	}
	if legacy != "" {
		r.Header.Set(mcpwire.HeaderProtocolVersion, legacy)
	}
}

// opened notes the session of the legacy era.
func (b *bridge) opened(id string, initialize []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.session, b.first = id, bytes.Clone(initialize)
}

// setVersion notes the revision of a session.
func (b *bridge) setVersion(answer []byte) {
	var m struct {
		Result struct {
			Version string `json:"protocolVersion"`
		} `json:"result"`
	}
	if json.Unmarshal(answer, &m) == nil {
		b.mu.Lock()
		b.version = m.Result.Version
		b.mu.Unlock()
	}
}

// again opens the session a second time: sessions live at one front door, and that may have
// been replaced. The client does not notice.
func (b *bridge) again(ctx context.Context) bool {
	b.mu.Lock()
	first := b.first
	b.session = ""
	b.mu.Unlock()
	if first == nil {
		return false
	}
	resp, err := b.send(ctx, http.MethodPost, first, "", nil)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	id := resp.Header.Get(mcpwire.HeaderSessionID)
	if id == "" {
		return false
	}
	b.opened(id, first)
	b.work.Go(func() { b.follow(ctx) })
	return true
}

// follow writes what happens outside of requests, in a session of the legacy era.
func (b *bridge) follow(ctx context.Context) {
	b.mu.Lock()
	session := b.session
	b.mu.Unlock()
	if session == "" {
		return
	}
	resp, err := b.send(ctx, http.MethodGet, nil, "", nil)
	if err != nil {
		return // the next request says so
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusOK && mediaType(resp.Header) == mediaEvents {
		_ = readEvents(resp.Body, func(e sse.Event) error { b.write(e.Data); return nil }) // its end is no fault: the session may be over
	}
}

// part ends the session.
func (b *bridge) part() {
	b.mu.Lock()
	session := b.session
	b.mu.Unlock()
	if session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), partTime)
	defer cancel()
	if resp, err := b.send(ctx, http.MethodDelete, nil, "", nil); err == nil {
		_ = resp.Body.Close()
	}
}

// learn notes which arguments tools want repeated in headers.
func (b *bridge) learn(answer []byte) {
	var m struct {
		Result struct {
			Tools []struct {
				Name  string          `json:"name"`
				Input json.RawMessage `json:"inputSchema"`
			} `json:"tools"`
		} `json:"result"`
	}
	if json.Unmarshal(answer, &m) != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, tool := range m.Result.Tools {
		b.headers[tool.Name] = mcpwire.ParamHeaders(tool.Input)
	}
}

// repeat sets the headers that repeat arguments.
func (b *bridge) repeat(r *http.Request, m *envelope) {
	if m.Method != schema.MethodCallTool {
		return
	}
	b.mu.Lock()
	list := b.headers[m.Params.Name]
	b.mu.Unlock()
	for _, want := range list {
		if text, ok := mcpwire.HeaderText(want.Argument(m.Params.Arguments)); ok {
			r.Header.Set(want.Name, mcpwire.EncodeHeader(text))
		}
	}
}

// write writes one message as one line.
func (b *bridge) write(text []byte) {
	line := bytes.Clone(bytes.TrimSpace(text))
	for i, c := range line {
		if c == '\n' || c == '\r' {
			line[i] = ' '
		}
	}
	b.writing.Lock()
	defer b.writing.Unlock()
	_, _ = b.out.Write(append(line, '\n')) // a client that left closes stdin as well
}

func (b *bridge) fault(id json.RawMessage, code int64, message string) {
	if id == nil {
		id = json.RawMessage("null")
	}
	b.write(append(mcpwire.AppendError(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,`, id), code, message), '}'))
}

func (b *bridge) say(format string, args ...any) {
	fmt.Fprintf(b.note, "callyard mcp stdio: "+format+"\n", args...)
}

package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/sse"
)

const (
	modernFrom    = "2026-07-28"
	sessionHeader = "Mcp-Session-Id"
	metaProtocol  = "io.modelcontextprotocol/protocolVersion"
	// partTime bounds the goodbye.
	partTime = 2 * time.Second
)

// bridge passes the messages of one client on stdin and stdout to the MCP face and
// back. Bodies go through as the bytes that they are; on the way out, line breaks
// between the tokens become spaces, because a line is a message.
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
	headers map[string][]toolHeader
	work    sync.WaitGroup
}

// toolHeader is an argument that a tool wants repeated in a header.
type toolHeader struct {
	path []string
	name string
}

func newBridge(c *client, server string, out, note io.Writer) *bridge {
	return &bridge{c: c, url: c.base + mountPath(server), out: out, note: note, running: make(map[string]context.CancelFunc), headers: make(map[string][]toolHeader)}
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
	if json.Unmarshal(m.Params.Meta[metaProtocol], &version) != nil || version < modernFrom {
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
		b.fault(nil, -32700, "The line is not a JSON-RPC message.")
		return
	}
	version := m.modern()
	switch {
	case m.Method == "notifications/cancelled" && b.cancel(m.Params.RequestID):
		return
	case m.ID == nil || m.Method == "": // a notification, or an answer: in order
		b.exchange(ctx, line, &m, version)
		if m.Method == "notifications/initialized" {
			b.work.Go(func() { b.follow(ctx) })
		}
	case m.Method == "initialize":
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

// exchange posts a message and writes what comes back.
func (b *bridge) exchange(ctx context.Context, body []byte, m *envelope, version string) {
	resp, err := b.post(ctx, body, m, version)
	if err == nil && resp.StatusCode == http.StatusNotFound && version == "" && m.Method != "initialize" && b.again(ctx) {
		_ = resp.Body.Close()
		resp, err = b.post(ctx, body, m, version)
	}
	if err != nil {
		if m.ID != nil && m.Method != "" && ctx.Err() == nil {
			b.fault(m.ID, -31503, b.c.unreachable(ctx, err).Error())
		}
		return
	}
	defer func() { _ = resp.Body.Close() }()
	if id := resp.Header.Get(sessionHeader); m.Method == "initialize" && id != "" {
		b.opened(id, body)
	}
	if m.ID == nil || m.Method == "" {
		return
	}
	answered := b.pass(ctx, resp, m)
	if !answered && ctx.Err() == nil && resp.StatusCode != http.StatusAccepted {
		b.fault(m.ID, -31503, fmt.Sprintf("%s did not answer the request (HTTP %d).", b.c.base, resp.StatusCode))
	}
}

// pass writes the messages of an answer; it returns false where there were none.
func (b *bridge) pass(ctx context.Context, resp *http.Response, m *envelope) bool {
	some := false
	write := func(text []byte) {
		some = true
		if m.Method == "initialize" {
			b.agreed(text)
		}
		if m.Method == "tools/list" {
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
			b.say("the stream of an answer broke: %v", err)
		}
	}
	return some
}

func (b *bridge) post(ctx context.Context, body []byte, m *envelope, version string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", mediaJSON)
	b.head(r, version)
	if version != "" && m.ID != nil {
		r.Header.Set("Mcp-Method", m.Method)
		if name := firstOf(m.Params.Name, m.Params.URI, m.Params.TaskID); name != "" {
			r.Header.Set("Mcp-Name", headerText(name))
		}
		b.repeat(r, m)
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
		r.Header.Set("Mcp-Protocol-Version", version)
		return
	}
	if session != "" {
		r.Header.Set(sessionHeader, session)
	}
	if legacy != "" {
		r.Header.Set("Mcp-Protocol-Version", legacy)
	}
}

// opened notes the session of the legacy era.
func (b *bridge) opened(id string, initialize []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.session, b.first = id, bytes.Clone(initialize)
}

// agreed notes the revision of a session.
func (b *bridge) agreed(answer []byte) {
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

// again opens the session anew: sessions live at one front door, and that may have
// been replaced. The client does not notice.
func (b *bridge) again(ctx context.Context) bool {
	b.mu.Lock()
	first := b.first
	b.session = ""
	b.mu.Unlock()
	if first == nil {
		return false
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url, bytes.NewReader(first))
	if err != nil {
		return false
	}
	r.Header.Set("Content-Type", mediaJSON)
	b.head(r, "")
	resp, err := b.c.http.Do(r)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	id := resp.Header.Get(sessionHeader)
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
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url, nil)
	if err != nil {
		return
	}
	b.head(r, "")
	resp, err := b.c.http.Do(r)
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
	r, err := http.NewRequestWithContext(ctx, http.MethodDelete, b.url, nil)
	if err != nil {
		return
	}
	b.head(r, "")
	if resp, err := b.c.http.Do(r); err == nil {
		_ = resp.Body.Close()
	}
}

// learn notes which arguments tools want repeated in headers.
func (b *bridge) learn(answer []byte) {
	if !bytes.Contains(answer, []byte("x-mcp-header")) {
		return
	}
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
		b.headers[tool.Name] = toolHeaders(tool.Input, nil, 0)
	}
}

func toolHeaders(schema json.RawMessage, path []string, depth int) (list []toolHeader) {
	var object struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Header     string                     `json:"x-mcp-header"`
	}
	if depth > 32 || json.Unmarshal(schema, &object) != nil {
		return nil
	}
	if object.Header != "" {
		list = append(list, toolHeader{path, object.Header})
	}
	for name, sub := range object.Properties {
		list = append(list, toolHeaders(sub, append(path[:len(path):len(path)], name), depth+1)...)
	}
	return list
}

// repeat sets the headers that repeat arguments.
func (b *bridge) repeat(r *http.Request, m *envelope) {
	if m.Method != "tools/call" {
		return
	}
	b.mu.Lock()
	list := b.headers[m.Params.Name]
	b.mu.Unlock()
	for _, want := range list {
		value := m.Params.Arguments
		for _, name := range want.path {
			var object map[string]json.RawMessage
			if json.Unmarshal(value, &object) != nil {
				value = nil
				break
			}
			value = object[name]
		}
		var text string
		switch {
		case len(value) == 0 || value[0] == 'n' || value[0] == '{' || value[0] == '[':
			continue
		case value[0] != '"':
			text = string(value)
		case json.Unmarshal(value, &text) != nil:
			continue
		}
		r.Header.Set("Mcp-Param-"+want.name, headerText(text))
	}
}

// headerText is a value as a header may carry it.
func headerText(text string) string {
	plain := text == strings.TrimSpace(text) && !strings.HasPrefix(text, "=?base64?")
	for i := 0; plain && i < len(text); i++ {
		plain = text[i] >= ' ' && text[i] <= '~'
	}
	if plain {
		return text
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?="
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

func (b *bridge) fault(id json.RawMessage, code int, message string) {
	if id == nil {
		id = json.RawMessage("null")
	}
	text, err := json.Marshal(message)
	if err != nil {
		return // a string always encodes
	}
	b.write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, code, text))
}

func (b *bridge) say(format string, args ...any) {
	fmt.Fprintf(b.note, "callyard mcp stdio: "+format+"\n", args...)
}

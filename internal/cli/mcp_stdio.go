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

	"github.com/callyard/callyard/internal/kit/backoff"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/kit/sse"
	"github.com/callyard/callyard/pkg/schema"
)

// closeTimeout limits the time to end the session. Tests raise it.
var closeTimeout = 2 * time.Second

// The pauses before the stream of a session is opened again.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// bridge forwards the messages of one client between stdin and stdout and the MCP endpoint.
// It forwards messages byte for byte, except that it replaces line breaks between tokens by spaces
// in messages to the client, because the stdio transport has one message per line.
type bridge struct {
	c    *client
	url  string
	note io.Writer

	writing sync.Mutex
	out     io.Writer

	mu      sync.Mutex
	running map[string]context.CancelFunc // requests of the modern era, by id
	session string
	version string // the negotiated revision, in the legacy era
	first   []byte // the client's initialize request, to reopen the session
	headers map[string][]mcpwire.ParamHeader
	work    sync.WaitGroup

	following sync.Once
	pauses    backoff.Policy // of following
	reopening sync.Mutex
}

func newBridge(c *client, server string, out, note io.Writer) *bridge {
	return &bridge{
		c: c, url: c.base + mountPath(server), out: out, note: note, running: make(map[string]context.CancelFunc), headers: make(map[string][]mcpwire.ParamHeader),
		pauses: backoff.Policy{First: firstPause, Max: longestPause},
	}
}

// envelope holds the members of a message that the bridge uses.
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

// readEnvelope reads a message. Members of another type are left out: the endpoint knows whether it
// accepts them.
func readEnvelope(line []byte) (m envelope, ok bool) {
	err := json.Unmarshal(line, &m)
	_, other := errors.AsType[*json.UnmarshalTypeError](err)
	return m, err == nil || other
}

// isBatch reports whether a message is a batch, which the revisions before 2025-06-18 have.
func isBatch(line []byte) bool { return line[0] == '[' }

// modern returns the protocol revision of a message of the modern era, or "" for other messages.
func (m *envelope) modern() string {
	var version string
	if json.Unmarshal(m.Params.Meta[mcpwire.MetaProtocolVersion], &version) != nil || !mcpwire.IsModern(version) {
		return ""
	}
	return version
}

// run forwards messages until stdin ends, then cancels the requests in flight.
func (b *bridge) run(ctx context.Context, in io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	lines := make(chan []byte)
	failed := make(chan error, 1)
	go func() { // ends with stdin or with the process, because a read cannot be canceled
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
	b.closeSession()
	select {
	case err := <-failed:
		return fail(exitUsage, "Reading stdin failed: %w", err)
	default:
		return nil
	}
}

// take handles one message from the client.
func (b *bridge) take(ctx context.Context, line []byte) {
	m, ok := readEnvelope(line)
	if !ok {
		b.fault(nil, mcpwire.CodeParse, "The line is not a JSON-RPC message.")
		return
	}
	version := m.modern()
	switch {
	case isBatch(line):
		b.work.Go(func() { b.exchange(ctx, line, &m, "") })
	case m.Method == mcpwire.NotifyCancelled && b.cancel(m.Params.RequestID):
		return
	case m.ID == nil || m.Method == "": // a notification or a response: keep the order
		b.exchange(ctx, line, &m, version)
		if m.Method == mcpwire.NotifyInitialized {
			b.following.Do(func() { b.work.Go(func() { b.follow(ctx) }) })
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

// cancel closes the connection of a request of the modern era, which cancels it at the endpoint. It
// returns false if there is no such request.
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
	asks := m.ID != nil && m.Method != "" || isBatch(body)
	session := b.sessionID()
	resp, err := b.post(ctx, body, m, version)
	if err == nil && resp.StatusCode == http.StatusNotFound && version == "" && m.Method != mcpwire.MethodInitialize && b.reopen(ctx, session) {
		_ = resp.Body.Close()
		resp, err = b.post(ctx, body, m, version)
	}
	if err == nil && m.Method == schema.MethodCallTool && version != "" && headersRefused(resp) && b.listTools(ctx, m, version) {
		_ = resp.Body.Close()
		resp, err = b.post(ctx, body, m, version)
	}
	if err != nil {
		if asks && ctx.Err() == nil {
			b.fault(m.ID, mcpwire.CodeUnavailable, b.c.unreachable(ctx, err).Error())
		}
		return
	}
	defer func() { _ = resp.Body.Close() }()
	if id := resp.Header.Get(mcpwire.HeaderSessionID); m.Method == mcpwire.MethodInitialize && id != "" {
		b.storeSession(id, body)
	}
	if !asks {
		return
	}
	answered := b.pass(ctx, resp, m)
	switch {
	case answered || ctx.Err() != nil || resp.StatusCode == http.StatusAccepted:
	case mediaType(resp.Header) == mediaEvents:
		b.fault(m.ID, mcpwire.CodeUnavailable, fmt.Sprintf("The connection to %s ended before the answer; the request may have been processed.", b.c.base))
	default:
		b.fault(m.ID, mcpwire.CodeUnavailable, fmt.Sprintf("%s did not answer the request (HTTP %d).", b.c.base, resp.StatusCode))
	}
}

// isAnswer reports whether a message answers a request, and is not a notification or a request.
func isAnswer(text []byte) bool {
	answer := true
	var s rawjson.Scanner
	s.Reset(text)
	s.Object(func(name string) bool {
		answer = name != "method"
		return answer && name != "result" && s.Value() // a result can be long
	})
	return answer
}

// withID returns an error with the id of its request. A request that is refused before it was read,
// such as one without a valid key, gets an error without an id, and HTTP connects the two. On stdio
// the client would wait for its answer.
func withID(text []byte, id json.RawMessage) []byte {
	if known := rawjson.Get(text, "id"); id == nil || known != nil && string(known) != "null" {
		return text
	}
	return rawjson.With(text, "id", id)
}

// pass writes the messages of a response and reports whether the request was answered.
func (b *bridge) pass(ctx context.Context, resp *http.Response, m *envelope) bool {
	answered := false
	write := func(text []byte) {
		if resp.StatusCode >= http.StatusBadRequest {
			text = withID(text, m.ID)
		}
		answered = answered || isAnswer(text)
		if m.Method == mcpwire.MethodInitialize {
			b.setVersion(text)
		}
		if m.Method == mcpwire.MethodListTools {
			b.storeParamHeaders(text)
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
			b.logf("the stream of an answer was interrupted: %v", err)
		}
	}
	return answered
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
		b.setParamHeaders(r, m)
	})
}

// send sends one request to the endpoint. version is the revision in the modern era, or "" in a
// session. edit, if not nil, changes the request.
func (b *bridge) send(ctx context.Context, method string, body []byte, version string, edit func(*http.Request)) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, b.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", mediaJSON)
	}
	b.setHeaders(r, version)
	if edit != nil {
		edit(r)
	}
	return b.c.http.Do(r)
}

// setHeaders sets the headers that all requests have.
func (b *bridge) setHeaders(r *http.Request, version string) {
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

// storeSession stores the session of the legacy era.
func (b *bridge) storeSession(id string, initialize []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.session, b.first = id, bytes.Clone(initialize)
}

// setVersion stores the negotiated revision of a session.
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

// reopen opens a new session in place of one that has ended, unless another request did. The client
// does not notice.
func (b *bridge) reopen(ctx context.Context, ended string) bool {
	b.reopening.Lock()
	defer b.reopening.Unlock()
	b.mu.Lock()
	session, first := b.session, b.first
	b.mu.Unlock()
	if first == nil || session != ended {
		return first != nil
	}
	resp, err := b.send(ctx, http.MethodPost, first, "", func(r *http.Request) { r.Header.Del(mcpwire.HeaderSessionID) })
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	id := resp.Header.Get(mcpwire.HeaderSessionID)
	if id == "" {
		return false
	}
	b.storeSession(id, first)
	return true
}

// follow forwards server messages outside of requests, in a session of the legacy era. It opens the
// stream again when that ends, for example with its front door, until ctx ends.
func (b *bridge) follow(ctx context.Context) {
	for failures := 0; ; failures++ {
		session := b.sessionID()
		if session == "" {
			return
		}
		if resp, err := b.send(ctx, http.MethodGet, nil, "", nil); err == nil {
			status := resp.StatusCode
			if status == http.StatusOK && mediaType(resp.Header) == mediaEvents {
				failures = 0
				_ = readEvents(resp.Body, func(e sse.Event) error { b.write(e.Data); return nil }) // its end is not an error: the front door may have ended
			}
			_ = resp.Body.Close()
			switch {
			case status == http.StatusNotFound:
				b.reopen(ctx, session)
			case status/100 == 4 && status != http.StatusTooManyRequests:
				return // there is no stream, or the next request reports the error
			}
		}
		if !sleep.For(b.pauses.Delay(failures), ctx.Done()) {
			return
		}
	}
}

// sessionID returns the current session, or "".
func (b *bridge) sessionID() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.session
}

// closeSession ends the session.
func (b *bridge) closeSession() {
	if b.sessionID() == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if resp, err := b.send(ctx, http.MethodDelete, nil, "", nil); err == nil {
		_ = resp.Body.Close()
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
	_, _ = b.out.Write(append(line, '\n')) // a client that has exited also closed stdin, which ends run
}

func (b *bridge) fault(id json.RawMessage, code int64, message string) {
	if id == nil {
		id = json.RawMessage("null")
	}
	b.write(append(mcpwire.AppendError(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,`, id), code, message), '}'))
}

func (b *bridge) logf(format string, args ...any) {
	fmt.Fprintf(b.note, "callyard mcp stdio: "+format+"\n", args...)
}

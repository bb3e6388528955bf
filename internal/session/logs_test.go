package session

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/launch"
)

// noLink is a link without a server. All calls share its stream.
type noLink struct{}

func (noLink) send(*Running) bool             { return false }
func (noLink) post([]byte)                    {}
func (noLink) cancel(*Running, int64, string) {}
func (noLink) close()                         {}
func logAbout(text, level string) *frame { // a log message of a server
	return &frame{method: []byte(`"notifications/message"`), params: []byte(`{"level":"` + level + `","data":"` + text + `"}`)}
}

// shared returns a modern session with one stream for all calls.
func shared() *session {
	s := newSession(newPool(Config{}, slog.New(slog.DiscardHandler), func() {}))
	s.link, s.env = noLink{}, modernEnvelope("2026-07-28", "n", "v")
	return s
}

// logsTo registers a call whose caller wants log messages, and returns a channel of these.
func (s *session) logsTo(caller, level string) (*Running, chan string) {
	got := make(chan string, 10)
	r := &Running{pool: s.pool, req: &Request{Name: "t", Caller: caller, LogLevel: level, Said: func(_ int64, message []byte) bool {
		got <- string(message)
		return true
	}}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.register(r)
	return r, got
}

func TestLogMessagesOnASharedStreamReachOneCaller(t *testing.T) {
	s := shared()
	r, mine := s.logsTo("ada", "info")
	if env := s.env.forCall(r); !strings.Contains(env.fixed, `"`+mcpwire.MetaLogLevel+`":"info"`) {
		t.Errorf("the server is not asked to log: %s", env.fixed)
	}
	other, theirs := s.logsTo("bob", "debug")
	if env := s.env.forCall(other); strings.Contains(env.fixed, mcpwire.MetaLogLevel) {
		t.Errorf("the server is asked to log for two callers at once: %s", env.fixed)
	}
	if !s.logs.pass(logAbout("one", "warning"), 0) || s.logs.pass(logAbout("two", "debug"), 0) || s.logs.pass(logAbout("three", "loud"), 0) {
		t.Error("what is of the level, and nothing else, is the caller's")
	}
	if len(theirs) != 0 || len(mine) != 1 || <-mine != `{"method":"notifications/message","params":{"level":"warning","data":"one"}}` {
		t.Errorf("%d for the caller, %d for the other", len(mine), len(theirs))
	}
	// An abandoned call may keep logging for a while.
	s.forget(r, "canceled")
	if r, _ := s.logsTo("bob", "debug"); r.logs {
		t.Error("another caller may get what a call logs that was given up")
	}
	if r, _ := s.logsTo("ada", "debug"); !r.logs {
		t.Error("the same caller gets no log messages any more")
	}
}

func TestLogMessagesOnASharedLegacyStreamReachNoCaller(t *testing.T) {
	s := shared()
	s.env = envelope{}
	if r, _ := s.logsTo("ada", "info"); r.logs || s.logs.pass(logAbout("one", "warning"), 0) {
		t.Error("a log message of an older server on a stream that calls share was passed on")
	}
}

func TestLogMessagesOfAnHTTPServerReachTheirCall(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "logger", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "log"}, func(ctx context.Context, r *mcp.CallToolRequest, in struct {
		Text string `json:"text"`
	}) (*mcp.CallToolResult, any, error) {
		for _, level := range []mcp.LoggingLevel{"debug", "warning"} { //nolint:staticcheck // deprecated in 2026-07-28, and there for another year
			_ = r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Data: in.Text}) //nolint:staticcheck // as above
		}
		return &mcp.CallToolResult{}, nil, nil
	})
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(h.Close)
	w := open(t, Config{Spec: launch.Spec{ID: "logger", Type: "http", URL: h.URL}})
	w.ready()
	got := make(chan string, 100)
	ask := func(text, level string) func() Outcome {
		_, end := w.begin(&Request{Name: "log", Params: []byte(`{"text":"` + text + `"}`), Caller: text, LogLevel: level, Said: func(_ int64, message []byte) bool {
			got <- text + " hears " + string(message)
			return true
		}})
		return end
	}
	ends := []func() Outcome{ask("ada", "debug"), ask("bob", "info"), ask("eve", "")}
	for _, end := range ends {
		must(t, end())
	}
	heard := map[string]bool{}
	for len(got) > 0 {
		heard[<-got] = true
	}
	for _, want := range []string{
		`ada hears {"method":"notifications/message","params":{"data":"ada","level":"debug"}}`,
		`ada hears {"method":"notifications/message","params":{"data":"ada","level":"warning"}}`,
		`bob hears {"method":"notifications/message","params":{"data":"bob","level":"warning"}}`,
	} {
		if !heard[want] {
			t.Errorf("not heard: %s", want)
		}
		delete(heard, want)
	}
	for more := range heard {
		t.Errorf("too much: %s", more)
	}
}

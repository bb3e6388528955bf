package worker_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// A server whose tool effect writes its id into a file on each run, and a REST service that answers
// once with HTTP 429, both with a rule that names every failure.
func TestServersFileRetryRuleRetriesOnlySafeTools(t *testing.T) {
	srv := bustest.Start(t)
	var asked atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1)%2 == 1 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		fmt.Fprint(w, `{"messages":[{"content":"done"}]}`)
	}))
	t.Cleanup(service.Close)
	tools := `[{"type":"function","function":{"name":"look"}},{"type":"function","function":{"name":"change"}}]`
	always := &schema.Retry{Attempts: 3, Backoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond, On: schema.RetryKinds()}
	local := entry("local", mcptest.Echo)
	local.SafeTools, local.Retry = []string{"fail"}, always
	rest := config.ServerEntry{ID: "rest", Type: config.TypeToolEndpoint, SafeTools: []string{"look"}, Retry: always,
		Endpoint: &config.ToolEndpoint{URL: service.URL, Format: config.FormatOpenAI, Tools: []byte(tools)}}
	w := start(t, srv, "w", false, local, rest)
	t.Cleanup(func() { stop(t, w) })
	router, cat := front(t, srv)
	await(t, cat, "both servers", func() bool { return hasTools(cat, "local")() && hasTools(cat, "rest")() })
	do := func(server schema.ServerID, name, arguments string, timeout time.Duration) (*schema.Result, error) {
		tool, err := cat.Tool(server, name)
		if err != nil {
			t.Fatal(err)
		}
		if tool.Retry == nil {
			t.Fatalf("%s/%s has no rule", server, name)
		}
		return router.Do(t.Context(), &schema.Call{ID: schema.NewCallID(), Server: server, Tool: name, Arguments: []byte(arguments), Timeout: timeout, Safe: tool.Safe, Retry: tool.Retry})
	}
	if res, err := do("local", "fail", `{}`, 10*time.Second); err != nil || !res.ToolError || res.Attempts != 3 {
		t.Errorf("%+v, %v", res, err)
	}
	if res, err := do("rest", "look", `{}`, 10*time.Second); err != nil || res.ToolError || res.Attempts != 2 || asked.Load() != 2 {
		t.Errorf("%+v, %v, asked %d times", res, err, asked.Load())
	}
	if res, err := do("rest", "change", `{}`, 10*time.Second); err != nil || !res.ToolError || asked.Load() != 3 {
		t.Errorf("a tool that is not safe was repeated: %+v, %v, asked %d times", res, err, asked.Load())
	}
	file := filepath.Join(t.TempDir(), "effects")
	if _, err := do("local", "effect", fmt.Sprintf(`{"path":%q,"id":"one","after":%q}`, file, file+".never"), 5*time.Second); schema.KindOf(err) != schema.KindOutcomeUnknown {
		t.Errorf("%v", err)
	}
	if text, err := os.ReadFile(file); err != nil || strings.Count(string(text), "one") != 1 {
		t.Errorf("it ran as %q, %v", text, err)
	}
}

// An endpoint for several calls per request that omits a call from its answer: the call may have
// run.
func TestCallOmittedByTheEndpointEndsAsUnknown(t *testing.T) {
	srv := bustest.Start(t)
	var asked atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, `{"messages":[]}`)
	}))
	t.Cleanup(service.Close)
	w := start(t, srv, "w", false, config.ServerEntry{ID: "rest", Type: config.TypeToolEndpoint, Endpoint: &config.ToolEndpoint{
		URL: service.URL, Format: config.FormatOpenAI, CallsPerRequest: 8, Tools: []byte(`[{"type":"function","function":{"name":"echo"}}]`)}})
	t.Cleanup(func() { stop(t, w) })
	router, cat := front(t, srv)
	await(t, cat, "the server", hasTools(cat, "rest"))
	c := echoCall("rest", "hi")
	if _, err := router.Do(t.Context(), c); schema.KindOf(err) != schema.KindOutcomeUnknown || asked.Load() != 1 {
		t.Errorf("%v, asked %d times", err, asked.Load())
	}
	c.Safe = true
	if _, err := router.Do(t.Context(), c); schema.KindOf(err) != schema.KindOutcomeUnknown || asked.Load() < 3 {
		t.Errorf("%v, asked %d times: a call that is safe to repeat is sent again", err, asked.Load())
	}
}

package rollout

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/episode"
	"github.com/callyard/callyard/internal/kit/httpguard"
	"github.com/callyard/callyard/pkg/schema"
)

// twoTools is a catalog with two tools at one worker. One has the name of a route.
type twoTools struct{}

func (twoTools) Servers() []catalog.Server {
	return []catalog.Server{{Server: schema.Server{ID: "todo"}}}
}

func (twoTools) Tools(schema.ServerID) ([]catalog.Tool, error) {
	var all []catalog.Tool
	for _, name := range []string{"add", "delete"} {
		tool := catalog.Tool{Tool: &schema.Tool{Server: "todo", Name: name, Digest: "a", Raw: json.RawMessage(`{}`)}}
		tool.Switch.Enabled = true
		all = append(all, tool)
	}
	return all, nil
}

func (twoTools) Holders(schema.ServerID) []schema.Worker {
	return []schema.Worker{{ID: "w", Servers: []schema.Server{{ID: "todo", State: schema.StateInitialized, Transport: "builtin"}}}}
}

// slowCalls is a fabric whose calls take a while.
type slowCalls struct {
	episode.Calls
	takes time.Duration
}

func (c slowCalls) Submit(ctx context.Context, _ calls.Request) (calls.Outcome, error) {
	select {
	case <-time.After(c.takes):
		return calls.Outcome{Result: &schema.Result{Body: []byte(`{"content":[]}`)}}, nil
	case <-ctx.Done():
		return calls.Outcome{}, schema.Errorf(schema.KindCanceled, "The call was canceled.")
	}
}

// serving returns a server of one environment with one task and the given limits. The returned
// function ends it.
func serving(t *testing.T, limits string, takes time.Duration) (*Server, func()) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"env.yaml": "environments:\n  notes:\n    tools: [todo/*]\n    tasks_file: t\n    limits: " + limits + "\n", "t": `{"id":"a","question":"x"}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := episode.Load(filepath.Join(dir, "env.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := authn.NewKeys(nil)
	if err != nil {
		t.Fatal(err)
	}
	origin, err := httpguard.New(nil, keys.Configured)
	if err != nil {
		t.Fatal(err)
	}
	m := episode.New(episode.Options{File: f, Calls: slowCalls{takes: takes}, Catalog: twoTools{}, Log: slog.New(slog.DiscardHandler)})
	s := New(Options{Episodes: m, Keys: keys, Origin: origin})
	return s, func() { s.Close(); m.Close() }
}

// post sends a request, with the cookies of an earlier response.
func post(t *testing.T, s *Server, path, body string, after *httptest.ResponseRecorder) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1"+path, strings.NewReader(body))
	if after != nil {
		for _, c := range after.Result().Cookies() {
			r.AddCookie(c)
		}
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestASessionLastsAsLongAsItsEpisodeMayBeIdle(t *testing.T) {
	for limits, want := range map[string]int{"{idle: 2h, time: 9h}": http.StatusOK, "{idle: 1m, time: 9h}": http.StatusNotFound, "{time: 9h}": http.StatusNotFound} {
		synctest.Test(t, func(t *testing.T) {
			s, end := serving(t, limits, 0)
			defer end()
			begun := post(t, s, "/seed_session", "{}", nil)
			time.Sleep(time.Hour)
			if got := post(t, s, "/add", "{}", begun); got.Code != want {
				t.Errorf("%s: %d %s", limits, got.Code, got.Body)
			}
		})
	}
}

func TestASessionLastsWhileItsStepRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, end := serving(t, "{call_time: 2h, time: 9h}", time.Hour)
		defer end()
		begun := post(t, s, "/seed_session", "{}", nil)
		got := post(t, s, "/add", "{}", begun)
		if got.Code != http.StatusOK || strings.Contains(got.Body.String(), "masked") {
			t.Errorf("%d %s", got.Code, got.Body)
		}
	})
}

func TestAClosedServerBeginsNothing(t *testing.T) {
	s, end := serving(t, "{}", 0)
	begun := post(t, s, "/seed_session", "{}", nil)
	s.Close()
	defer end()
	for _, path := range []string{"/seed_session", "/reset", "/create_session"} {
		if got := post(t, s, path, "{}", nil); got.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
	}
	if got := post(t, s, "/add", "{}", begun); got.Code != http.StatusNotFound {
		t.Errorf("a step: %d %s", got.Code, got.Body)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/ws", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("a connection: %d %s", w.Code, w.Body)
	}
}

func TestVerifyTakesABodyThatIsNull(t *testing.T) {
	s, end := serving(t, "{}", 0)
	defer end()
	for _, body := range []string{"null", "", "{}"} {
		got := post(t, s, "/verify", body, post(t, s, "/seed_session", "{}", nil))
		if got.Code != http.StatusOK || !strings.Contains(got.Body.String(), `"mask_sample":false`) {
			t.Errorf("%q: %d %s", body, got.Code, got.Body)
		}
	}
}

func TestAFaultOfARequestNamesItsMember(t *testing.T) {
	s, end := serving(t, "{}", 0)
	defer end()
	for body, want := range map[string]string{
		`{"seed":1.5}`:  "The member seed of the body has a value of a wrong type: number 1.5.",
		`{"task_id":5}`: "The member task_id of the body has a value of a wrong type: number.",
		`[]`:            "The body must be a JSON object, and is of the type array.",
		`{"seed":`:      "The body cannot be read as JSON: unexpected end of JSON input",
	} {
		got := post(t, s, "/reset", body, nil)
		if got.Code != http.StatusBadRequest || !strings.Contains(got.Body.String(), `"detail":"`+want) {
			t.Errorf("%s: %d %s", body, got.Code, got.Body)
		}
	}
	got := post(t, s, "/rewards", `{"items":[{"completion":"a","expected":[]},{"completion":"a"}]}`, nil)
	if got.Code != http.StatusUnprocessableEntity || !strings.Contains(got.Body.String(), `"pointer":"/items/1"`) {
		t.Errorf("an item without a label: %d %s", got.Code, got.Body)
	}
	begun := post(t, s, "/reset", "{}", nil)
	if got := post(t, s, "/step", `{"action":{"type":5}}`, begun); !strings.Contains(got.Body.String(), "The member type of the action has a value of a wrong type: number.") {
		t.Errorf("an action: %d %s", got.Code, got.Body)
	}
	for message, want := range map[string]string{"[]": "must be a JSON object, and is of the type array", `{"type":5}`: "The member type of the message has a value of a wrong type"} {
		out, goOn := s.answerMessage(t.Context(), &session{}, []byte(message))
		if text, err := json.Marshal(out); err != nil || !goOn || !strings.Contains(string(text), want) {
			t.Errorf("the message %s: %s, %v", message, text, err)
		}
	}
}

func TestAToolWithTheNameOfARouteIsCalledByCookie(t *testing.T) {
	s, end := serving(t, "{}", 0)
	defer end()
	begun := post(t, s, "/seed_session", "{}", nil)
	if got := post(t, s, "/delete", "{}", begun); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), `"call_id"`) {
		t.Errorf("the tool: %d %s", got.Code, got.Body)
	}
	if got := post(t, s, "/num_tasks", `{"split":"train"}`, begun); got.Body.String() != `{"num_tasks":1}` {
		t.Errorf("a route whose name no tool has: %d %s", got.Code, got.Body)
	}
	if got := post(t, s, "/verify", "{}", begun); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), `"mask_sample":false`) {
		t.Errorf("the end: %d %s", got.Code, got.Body)
	}
	begun = post(t, s, "/reset", "{}", nil)
	var reset struct {
		Metadata struct {
			Session string `json:"session_id"`
		}
	}
	if err := json.Unmarshal(begun.Body.Bytes(), &reset); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/delete", strings.NewReader("{}"))
	r.Header.Set(sessionHeader, reset.Metadata.Session)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"sid"`) {
		t.Errorf("the route: %d %s", w.Code, w.Body)
	}
}

func TestAFailedResetLeavesNoSession(t *testing.T) {
	s, end := serving(t, "{episodes: 1}", 0)
	defer end()
	if got := post(t, s, "/reset", "{}", nil); got.Code != http.StatusOK {
		t.Fatalf("%d %s", got.Code, got.Body)
	}
	for _, path := range []string{"/reset", "/seed_session"} {
		for body, want := range map[string]int{"{}": http.StatusServiceUnavailable, `{"task_id":"none"}`: http.StatusNotFound} {
			if got := post(t, s, path, body, nil); got.Code != want {
				t.Errorf("%s %s: %d %s", path, body, got.Code, got.Body)
			}
		}
	}
	if all := s.sessions.all(); len(all) != 1 {
		t.Errorf("%d sessions", len(all))
	}
}

func TestTheFaultOfAMessageNamesTheTypesThatExist(t *testing.T) {
	s, end := serving(t, "{}", 0)
	defer end()
	said, _ := s.answerMessage(t.Context(), &session{env: s.o.Episodes.Environments()[0]}, []byte(`{"type":"other"}`))
	for _, kind := range []string{"reset", "step", "state", "snapshot", "mcp", "close"} {
		if text, err := json.Marshal(said); err != nil || !strings.Contains(string(text), kind) {
			t.Errorf("%s, %v: %s is missing", text, err, kind)
		}
	}
}

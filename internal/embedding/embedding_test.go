package embedding

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// endpoint answers with a vector along one axis for each known word.
type endpoint struct {
	mu       sync.Mutex
	requests []string        // their bodies
	keys     map[string]bool // the Authorization headers
	status   int             // 0 means 200
	hang     bool
	refuses  string // requests with this text get 400
}

func (e *endpoint) RoundTrip(r *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(r.Body)
	e.mu.Lock()
	e.requests = append(e.requests, string(body))
	e.keys[r.Header.Get("Authorization")] = true
	status, hang := e.status, e.hang
	e.mu.Unlock()
	if hang {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if status != 0 {
		return &http.Response{StatusCode: status, Status: http.StatusText(status), Body: io.NopCloser(strings.NewReader("the text of the query"))}, nil
	}
	if e.refuses != "" && strings.Contains(string(body), e.refuses) {
		return &http.Response{StatusCode: 400, Body: io.NopCloser(strings.NewReader(""))}, nil
	}
	var in struct {
		Model string
		Input []string
	}
	if err := json.Unmarshal(body, &in); err != nil || in.Model != "m" || r.URL.Path != "/v1/embeddings" {
		return nil, errors.New("a wrong request")
	}
	type vector struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	var data []vector
	for i, text := range in.Input {
		v := vector{i, []float32{0.1, 0.1}}
		if strings.Contains(text, "file") {
			v.Embedding[0] = 5
		}
		if strings.Contains(text, "weather") {
			v.Embedding[1] = 5
		}
		data = append([]vector{v}, data...) // deliberately not in order
	}
	out, _ := json.Marshal(map[string]any{"data": data})
	return &http.Response{StatusCode: 200, Body: io.NopCloser(bytes.NewReader(out))}, nil
}

func open(t *testing.T, e *endpoint) *Store {
	e.keys = map[string]bool{}
	s := Open(settings.Embeddings{URL: "https://embeddings.test/v1/", Model: "m", Key: telemetry.Secret("k3y"), MinSimilarity: 0.4}, slog.New(slog.DiscardHandler))
	s.client.http.Transport = e
	return s
}

func tool(name string) *schema.Tool {
	return &schema.Tool{Server: "s", Name: name, Digest: "d-" + name, Raw: json.RawMessage(`{}`)}
}

func TestEachDefinitionIsEmbeddedOnceAndQueriesCompareWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{}
		s := open(t, e)
		defer s.Close()
		if _, err := s.Query(t.Context(), "x"); err == nil || len(e.requests) != 0 {
			t.Errorf("a query before any tool: %v, %d requests", err, len(e.requests))
		}
		var tools []*schema.Tool
		for i := range 130 {
			tools = append(tools, tool("weather"+strings.Repeat("x", i)))
		}
		tools = append(tools, tool("file"))
		s.Want(tools)
		synctest.Wait()
		s.Want(tools)
		synctest.Wait()
		if len(e.requests) != 3 {
			t.Errorf("%d requests for 131 definitions", len(e.requests))
		}
		m, err := s.Query(t.Context(), "a file")
		if err != nil || len(m.Query) != 2 || m.Least != 0.4 || m.Of(tool("file"))[0] < 0.99 || m.Of(tool("weather"))[0] > 0.1 || m.Of(tool("other")) != nil {
			t.Errorf("%v, %v", m.Query, err)
		}
		s.Want(tools[:1])
		synctest.Wait()
		if len(s.vectors) != 1 {
			t.Errorf("%d vectors are kept of one tool", len(s.vectors))
		}
		if len(e.keys) != 1 || !e.keys["Bearer k3y"] {
			t.Errorf("keys sent: %v", e.keys)
		}
	})
}

func TestFailedEmbeddingsAreRetriedWithoutBlockingSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{status: http.StatusServiceUnavailable}
		s := open(t, e)
		defer s.Close()
		s.Want([]*schema.Tool{tool("file")})
		synctest.Wait()
		if len(e.requests) != 1 || len(s.vectors) != 0 {
			t.Errorf("%d requests, %d vectors", len(e.requests), len(s.vectors))
		}
		e.mu.Lock()
		e.status = 0
		e.mu.Unlock()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s.of(tool("file")) == nil {
			t.Fatal("what failed was not tried again")
		}
		e.mu.Lock()
		e.hang = true
		e.mu.Unlock()
		began := time.Now()
		if _, err := s.Query(t.Context(), "secret words"); err == nil || !strings.Contains(err.Error(), "within 2s") || strings.Contains(err.Error(), "secret") || time.Since(began) != queryWithin {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		n := len(e.requests)
		if _, err := s.Query(t.Context(), "again"); err == nil || len(e.requests) != n {
			t.Errorf("a query right after one that failed: %v, %d requests", err, len(e.requests)-n)
		}
		e.mu.Lock()
		e.hang = false
		e.mu.Unlock()
		time.Sleep(pause)
		if _, err := s.Query(t.Context(), "again"); err != nil {
			t.Error(err)
		}
	})
}

func TestRefusedTextDoesNotBlockOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{refuses: "weather"}
		s := open(t, e)
		defer s.Close()
		s.Want([]*schema.Tool{tool("file"), tool("weather"), tool("file2"), tool("file3")})
		for range 60 {
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		if s.of(tool("file")) == nil || s.of(tool("file2")) == nil || s.of(tool("file3")) == nil || s.of(tool("weather")) != nil {
			t.Errorf("%d of 3 vectors", len(s.vectors))
		}
	})
}

func TestErrorsDoNotRevealTheEndpoint(t *testing.T) {
	for want, err := range map[string]error{
		"the embeddings endpoint answers 503 Service Unavailable": &statusError{503},
		"the embeddings endpoint did not answer within 2s":        fmt.Errorf("Post \"http://10.0.0.5/\": %w", context.DeadlineExceeded),
		"the embeddings endpoint gave no answer that can be used": errors.New("reading /run/secrets/key"),
	} {
		if got := publicError(err).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestCancelledQueryIsNotCountedAsEndpointFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{}
		s := open(t, e)
		defer s.Close()
		s.Want([]*schema.Tool{tool("file")})
		synctest.Wait()
		e.mu.Lock()
		e.hang = true
		e.mu.Unlock()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Query(ctx, "a"); !errors.Is(err, context.Canceled) || !s.until.IsZero() {
			t.Errorf("%v; queries wait until %v", err, s.until)
		}
	})
}

func TestWrongAnswersAreRefused(t *testing.T) {
	for name, raw := range map[string]string{
		"no JSON": "x", "no vectors": `{}`, "one of two": `{"data":[{"index":0,"embedding":[1]}]}`, "twice the same": `{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`,
		"an index too far": `{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[1]}]}`, "no direction": `{"data":[{"index":0,"embedding":[0,0]},{"index":1,"embedding":[1]}]}`,
		"empty": `{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[1]}]}`, "too large": `{"data":[{"index":0,"embedding":[1e39]},{"index":1,"embedding":[1]}]}`,
		"too long": `{"data":[{"index":0,"embedding":[` + strings.Repeat("1,", maxDimensions) + `1]},{"index":1,"embedding":[1]}]}`,
	} {
		if v, err := vectors([]byte(raw), 2); err == nil {
			t.Errorf("%s: %v", name, v)
		}
	}
}

func TestStoreIsNilWithoutEndpoint(t *testing.T) {
	s := Open(settings.EmbeddingsDefaults(), slog.New(slog.DiscardHandler))
	if s != nil {
		t.Fatal("a store without an endpoint")
	}
	s.Want(nil)
	s.Close()
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"data":[{"index":1,"embedding":[1,2]},{"index":0,"embedding":[3,4]}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		all, err := vectors(raw, 2)
		if err != nil {
			return
		}
		for _, v := range all {
			sum := float32(0)
			for _, x := range v {
				sum += x * x
			}
			if sum < 0.99 || sum > 1.01 {
				t.Errorf("%s: a vector of length %v", raw, sum)
			}
		}
	})
}

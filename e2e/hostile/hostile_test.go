package hostile

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const sample = `{"openapi":"3.1.0","paths":{
	"/calls":{"post":{"parameters":[{"name":"timeout_ms","in":"query","example":5},{"name":"Prefer","in":"header","example":"respond-async"}],
		"requestBody":{"content":{"application/json":{"example":{"server":"a","arguments":{"b":[1,"x",null]}}}}}}},
	"/calls/{id}":{"get":{"parameters":[{"name":"id","in":"path"}]}}}}`

func samples(t testing.TB) []Golden {
	t.Helper()
	all, err := Goldens([]byte(sample), Known{"/calls/{id}": {"id": "a/b"}})
	if err != nil {
		t.Fatal(err)
	}
	return append(append(all, MCP("/mcp", "echo", "session")...), Probes()...)
}

func TestOperationsWithoutSampleAreReported(t *testing.T) {
	all := samples(t)
	if all[0].Operation != "GET /calls/{id}" || all[0].Path != "/calls/a%2Fb" || all[1].Path != "/calls?timeout_ms=5" || len(all[1].Body) == 0 {
		t.Errorf("%+v", all[:2])
	}
	if _, err := Goldens([]byte(sample), nil); err == nil || !strings.Contains(err.Error(), "GET /calls/{id}") {
		t.Errorf("an operation whose path nobody knows is left out without a word: %v", err)
	}
}

func TestTheSameSeedMakesTheSameRequestsAndAnotherOneOthers(t *testing.T) {
	differ := 0
	for _, g := range samples(t) {
		for n := range 100 {
			one, two := Damaged(1, g, "127.0.0.1:1", n), Damaged(1, g, "127.0.0.1:1", n)
			if !bytes.Equal(one.Wire, two.Wire) || one.Damage != two.Damage {
				t.Fatalf("request %d of %s differs from itself", n, g.Operation)
			}
			if !bytes.Equal(one.Wire, Damaged(2, g, "127.0.0.1:1", n).Wire) {
				differ++
			}
		}
	}
	if differ < 500 {
		t.Errorf("another seed makes %d other requests", differ)
	}
}

func TestEveryMutationOccursAndGoldenIsUnchanged(t *testing.T) {
	for _, g := range samples(t)[:2] {
		whole := string(g.bytes("127.0.0.1:1"))
		done := map[string]int{}
		kept := 0
		for n := range 1000 {
			r := Damaged(7, g, "127.0.0.1:1", n)
			done[r.Damage]++
			if string(r.Wire) == whole {
				kept++
			}
		}
		if string(g.bytes("127.0.0.1:1")) != whole {
			t.Errorf("%s was changed", g.Operation)
		}
		want := 12
		if len(g.Body) > 0 {
			want = 26
		}
		if len(done) < want || kept > 50 {
			t.Errorf("%s: %d kinds of damage, %d requests without any: %v", g.Operation, len(done), kept, done)
		}
	}
}

func TestValuesAndMembersOfJSONBodyAreFound(t *testing.T) {
	m := &mutation{g: Golden{Body: []byte(`{"a": {"b":[1,"x\"]"]} , "c":null}`)}}
	values, members := m.spots()
	texts := func(spots []byteRange) (all []string) {
		for _, s := range spots {
			all = append(all, string(m.g.Body[s.from:s.to]))
		}
		return all
	}
	if got, want := strings.Join(texts(values), " "), `1 "x\"]" [1,"x\"]"] {"b":[1,"x\"]"]} null {"a": {"b":[1,"x\"]"]} , "c":null}`; got != want {
		t.Errorf("values %s, want %s", got, want)
	}
	if got, want := strings.Join(texts(members), " "), `"b":[1,"x\"]"] "a": {"b":[1,"x\"]"]} "c":null`; got != want {
		t.Errorf("members %s, want %s", got, want)
	}
}

func TestUnexpectedResponsesAreFindings(t *testing.T) {
	document := `{"type":"/problems/unavailable","status":503}`
	retry := http.Header{"Retry-After": {"1"}}
	for _, c := range []struct {
		answer  answer
		finding bool
	}{
		{answer{status: 200}, false}, {answer{status: 400, body: []byte("x")}, false}, {answer{status: 0}, false}, {answer{status: -1}, false}, {answer{status: 501}, false}, {answer{status: 505}, false},
		{answer{status: 503, header: retry, body: []byte(document)}, false}, {answer{status: 503, header: retry, headOnly: true}, false},
		{answer{status: 502, body: []byte(`{"jsonrpc":"2.0","error":{"code":-1}}`)}, false}, {answer{status: 504, body: []byte(`{"status":504,"type":"/problems/outcome-unknown"}`)}, false},
		{answer{status: 500, body: []byte(`{"status":500}`)}, true}, {answer{status: 503, body: []byte(document)}, true}, {answer{status: 429, body: []byte(`{"status":429}`)}, true},
		{answer{status: 503, header: retry, body: []byte("down")}, true}, {answer{status: 502, body: []byte(`{"status":502,"type":"/problems/internal"}`)}, true},
		{answer{status: 400, body: []byte("goroutine 1 [running]")}, true}, {answer{status: 507}, true},
	} {
		if got := c.answer.judge(true); (got != "") != c.finding {
			t.Errorf("%d %s: %q", c.answer.status, c.answer.body, got)
		}
	}
}

func TestAttackReportsTheRequestThatCausedAFault(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.RawQuery == "" && r.URL.Path == "/livez" && r.Header.Get("Prefer") == "" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	addr := strings.TrimPrefix(server.URL, "http://")
	attack := &Attack{Seed: 1, Lanes: 4, Each: 100, Targets: []Target{{Name: "it", Addr: addr, Goldens: Probes()}}}
	report, err := attack.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if report.Sent != 300 || report.FindingCount == 0 || report.FindingCount == 300 || !strings.Contains(report.Findings[0], "it GET /livez, request ") {
		t.Errorf("%d sent, %d findings: %.500s", report.Sent, report.FindingCount, report.Findings)
	}
	server.Close()
	if _, err := attack.Run(t.Context()); err == nil {
		t.Error("that nobody is there is no error")
	}
}

func TestOnlyLoopbackIsAttacked(t *testing.T) {
	for _, addr := range []string{"192.0.2.1:80", "example.com:80", "localhost:80", "[2001:db8::1]:80", "nonsense"} {
		if _, err := dial(t.Context(), addr); err == nil || !strings.Contains(err.Error(), "loopback") {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func TestSlowClientsHoldAndReleaseConnections(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // net/http detects that a caller left only while the body is read
		<-r.Context().Done()
	}))
	defer server.Close()
	addr := strings.TrimPrefix(server.URL, "http://")
	slow := &Slow{Target: Target{Addr: addr}, Each: 3, Every: time.Millisecond, Streams: Probes(), Bodies: MCP("/mcp", "echo", "x")[:3]}
	crowd, err := slow.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if opened, _ := crowd.Size(); opened != 15 {
		t.Errorf("%d connections are held", opened)
	}
	crowd.Stop()
}

func TestUnclosedConnectionIsReported(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	addr := strings.TrimPrefix(server.URL, "http://")
	over, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the test has waited enough"))
	if err := Closed(over, addr, "GET / HT"); err == nil {
		t.Error("the server waits, and nobody notices")
	}
	if err := Closed(t.Context(), addr, "nonsense\r\n\r\n"); err != nil {
		t.Errorf("the server closed it: %v", err)
	}
}

func TestFiguresCountCallsAndFailures(t *testing.T) {
	h := KeepCalling(t.Context(), 2, time.Microsecond, func(context.Context) error { return errors.New("no") })
	for h.Calls() < 10 {
		if !rest(t.Context(), time.Millisecond) {
			t.Fatal("the test is over")
		}
	}
	f := h.Stop()
	if f.Calls < 10 || f.Failed != f.Calls || len(f.Faults) != 5 || f.P50 > f.P99 || f.P99 > f.Most {
		t.Errorf("%+v", f)
	}
}

package rest

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/callers"
	"github.com/callyard/callyard/internal/frontdoor/frontdoortest"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestArgumentsAndResultsKeepTheirBytes(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	for _, arguments := range []string{
		`{"z":9007199254740993,"a":1.0,"é":"\u00e9 <&>","n":-0.0e+5}`,
		"{ \"b\" : [ 1 ,\t2 ],\r\n\"a\":{}}",
		`{"big":` + strings.Repeat("1234567890", 30) + `}`,
	} {
		for what, ask := range map[string]func() answer{
			"by path": func() answer {
				return f.do("POST", "/servers/demo/tools/echo", arguments, "Content-Type", "application/json; charset=utf-8")
			},
			"by body": func() answer {
				return f.do("POST", "/calls", `{"tool":"echo","arguments":`+arguments+` ,"server":"demo"}`, "Content-Type", "application/vnd.api+json")
			},
		} {
			a := ask()
			if got := string(f.Worker.Last().Payload); got != arguments {
				t.Errorf("%s: the worker got %s", what, got)
			}
			want := `{"content":[{"type":"hologram","data":9007199254740993}] , "got":` + arguments
			if what == "by body" {
				want += `,"outcome":"completed"`
			}
			if want += "}"; string(a.body) != want {
				t.Errorf("%s: the caller got %s", what, a.body)
			}
			if a.header.Get("Content-Type") != "application/json" || a.header.Get("Content-Length") == "" || schema.WorkerID(a.header.Get("Callyard-Worker")) != frontdoortest.WorkerID {
				t.Errorf("%s: %v", what, a.header)
			}
			if id := schema.CallID(a.header.Get("Callyard-Call-Id")); id != f.Worker.Last().ID || id == "" {
				t.Errorf("%s: call id %q", what, id)
			}
		}
	}
}

func TestWithoutABodyTheToolGetsAnEmptyObject(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	f.do("POST", "/servers/demo/tools/echo", "")
	f.do("POST", "/calls", `{"server":"demo","tool":"echo"}`)
	for _, call := range f.Worker.Calls() {
		if string(call.Payload) != "{}" {
			t.Errorf("it got %s", call.Payload)
		}
	}
	if f.Worker.Count() != 2 {
		t.Errorf("%d calls", f.Worker.Count())
	}
}

func TestPercentEncodedToolNamesCanBeCalled(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	for _, name := range []string{"a/b", "../up.dot", "wärme 温度"} {
		a := f.do("POST", "/servers/demo/tools/"+url.PathEscape(name), "{}")
		if a.status != http.StatusOK || f.Worker.Last().Tool != name {
			t.Errorf("%s: %d, the worker got %q", name, a.status, f.Worker.Last().Tool)
		}
	}
}

func TestAResourceIsReadByEachSpellingOfItsURI(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	const uri = "file:///a/../b c?x=1"
	for _, path := range []string{
		"/resources/file%3A%2F%2F%2Fa%2F..%2Fb%20c%3Fx=1",
		"/resources/file:///a/../b%20c%3Fx=1",
		"/resources?uri=" + url.QueryEscape(uri),
	} {
		r := f.request("GET", "/", nil)
		r.URL = &url.URL{Scheme: "http", Host: r.URL.Host, Opaque: "//" + r.URL.Host + "/servers/demo" + path} // verbatim, not cleaned
		a := f.send(r)
		if got := string(f.Worker.Last().Payload); a.status != 200 || got != `{"uri":"`+uri+`"}` || f.Worker.Last().Method != schema.MethodReadResource {
			t.Errorf("%s: %d, the worker got %s", path, a.status, got)
		}
	}
}

func TestOnlyValidTraceContextIsForwarded(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	a := f.do("POST", "/servers/demo/tools/echo", "{}", "traceparent", parent, "tracestate", "a=1", "tracestate", "b=2")
	if got := f.Worker.Last(); got.TraceParent != parent || got.TraceState != "a=1,b=2" || a.header.Get("Traceparent") != parent {
		t.Errorf("worker %q %q, caller %q", got.TraceParent, got.TraceState, a.header.Get("Traceparent"))
	}
	for _, unsound := range []string{
		"", "00", strings.ToUpper(parent), parent + "0", strings.Replace(parent, "00-", "ff-", 1),
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
		strings.Replace(parent, "-01", "_01", 1),
	} {
		a := f.do("POST", "/servers/demo/tools/echo", "{}", "traceparent", unsound, "tracestate", "a=1")
		if got := f.Worker.Last(); got.TraceParent != "" || got.TraceState != "" || a.header.Get("Traceparent") != "" {
			t.Errorf("%q travelled", unsound)
		}
	}
	f.do("POST", "/servers/demo/tools/echo", "{}", "traceparent", parent, "tracestate", strings.Repeat("x", 600))
	if f.Worker.Last().TraceState != "" {
		t.Error("an endless trace state travelled")
	}
}

func TestCallTimeoutComesFromBodyQueryOrHeader(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	for _, row := range []struct {
		path, body string
		header     []string
		want       time.Duration
	}{
		{"/servers/demo/tools/echo?timeout_ms=31500", "{}", []string{"Callyard-Timeout-Ms", "9"}, 31500 * time.Millisecond},
		{"/servers/demo/tools/echo", "{}", []string{"Callyard-Timeout-Ms", "32500"}, 32500 * time.Millisecond},
		{"/calls", `{"server":"demo","tool":"echo","timeout_ms":33500}`, nil, 33500 * time.Millisecond},
		{"/calls?timeout_ms=34500", `{"server":"demo","tool":"echo"}`, nil, 34500 * time.Millisecond},
		{"/servers/demo/tools/echo", "{}", nil, time.Minute}, // the router's default
	} {
		f.do("POST", row.path, row.body, row.header...)
		if got := f.Worker.Last().Budget; got != row.want {
			t.Errorf("%s: %s", row.path, got)
		}
	}
}

func TestACallWithoutAnAnswerEndsAsOutcomeUnknown(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	a := f.do("POST", "/servers/demo/tools/hang?timeout_ms=1", "")
	<-f.Worker.Asked // it may get the call later
	p := problemOf(t, a)
	if a.status != http.StatusGatewayTimeout || p.Type != "/problems/outcome-unknown" || p.Retryable || p.CallID != f.Worker.Last().ID {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestDisconnectedCallerCancelsItsCall(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	for _, accept := range []string{"application/json", "text/event-stream"} {
		ctx, leave := context.WithCancel(t.Context())
		r := f.request("POST", "/servers/demo/tools/hang", nil, "Accept", accept).WithContext(ctx)
		done := make(chan error, 1)
		go func() {
			res, err := f.client.Do(r)
			if err == nil {
				_ = res.Body.Close()
			}
			done <- err
		}()
		<-f.Worker.Asked
		leave()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", accept, err)
		}
		select {
		case <-f.Worker.Canceled:
		case <-time.After(time.Minute):
			t.Fatalf("%s: the worker was not told", accept)
		}
	}
}

func TestALargeResultArrivesWhole(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	a := f.do("POST", "/servers/demo/tools/large", "")
	if want := `{"content":[{"type":"text","text":"` + strings.Repeat("x", 3<<20) + `"}]}`; string(a.body) != want || a.header.Get("Content-Length") == "" {
		t.Errorf("%d bytes, status %d", len(a.body), a.status)
	}
}

func TestAPrincipalOverItsLimitGets429(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan struct{})
	for range principalInFlight {
		go func() {
			if res, err := f.client.Do(f.request("POST", "/servers/demo/tools/hang", nil).WithContext(ctx)); err == nil {
				_ = res.Body.Close()
			}
			done <- struct{}{}
		}()
	}
	for range 32 { // as many as the worker has slots
		<-f.Worker.Asked
	}
	polltest.Until(t, "all calls wait for a slot, so that the quota counts them", func() bool {
		return f.api.o.Router.Load()["demo"].Waiting >= principalInFlight-32
	})
	a := f.do("POST", "/servers/demo/tools/echo", "{}")
	if p := problemOf(t, a); a.status != http.StatusTooManyRequests || p.Type != "/problems/quota-exceeded" || !p.Retryable {
		t.Errorf("%d %s", a.status, a.body)
	}
	leave()
	for range principalInFlight {
		<-done
	}
}

func TestWithKeysCallersWithoutAKeyAreRefused(t *testing.T) {
	t.Parallel()
	key, hash := authn.Generate()
	f := openFabric(t, func(o *Options) {
		keys, err := authn.NewKeys([]authn.Key{{Name: "ci", Owner: "build", Groups: []string{"dev", "ops"}, Hash: hash}})
		if err != nil {
			t.Fatal(err)
		}
		o.Keys = callers.New(callers.Options{Keys: keys})
	})
	for _, path := range []string{"/", "/livez", "/readyz", "/health", "/docs", "/docs/elements.js", "/openapi.json", "/openapi.yaml", "/problems/not-found"} {
		if a := f.do("GET", path, ""); a.status != http.StatusOK {
			t.Errorf("%s without a key: %d", path, a.status)
		}
	}
	for _, path := range []string{"/servers", "/servers/demo", "/servers/demo/tools", "/tools", "/workers", "/events", "/metrics", "/version", "/nope", "/servers/demo/resources/file:///x"} {
		a := f.do("GET", path, "")
		if p := problemOf(t, a); a.status != http.StatusUnauthorized || p.Type != "/problems/unauthenticated" || !strings.HasPrefix(a.header.Get("Www-Authenticate"), "Bearer") {
			t.Errorf("%s without a key: %d", path, a.status)
		}
	}
	if a := f.do("POST", "/servers/demo/tools/echo", `{"n":1}`, "Authorization", "Bearer "+key); a.status != http.StatusOK {
		t.Errorf("with the key: %d %s", a.status, a.body)
	}
	if got := f.Worker.Last(); got.Principal != "ci" || got.Owner != "build" || strings.Join(got.Groups, " ") != "dev ops" {
		t.Errorf("principal %q %q %q", got.Principal, got.Owner, got.Groups)
	}
	if a := f.do("GET", "/metrics", "", "X-API-Key", key); a.status != http.StatusOK || !strings.Contains(string(a.body), "callyard_http_requests_total") {
		t.Errorf("metrics: %d", a.status)
	}
	// With keys, any host name is accepted: a foreign page has no key.
	if a := f.do("GET", "/servers", "", "X-API-Key", key, "Host", "callyard.example"); a.status != http.StatusOK {
		t.Errorf("by another name: %d", a.status)
	}
	if strings.Contains(f.Logged.String(), key) {
		t.Error("the log holds the key")
	}
	status := 0
	for i := 0; i < 100 && status != http.StatusTooManyRequests; i++ { // some more are let through as time passes
		status = f.do("GET", "/servers", "", "X-API-Key", "wrong").status
	}
	if status != http.StatusTooManyRequests {
		t.Errorf("after many wrong keys: %d", status)
	}
}

func TestLoopbackHostNamesAreAccepted(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	for host, want := range map[string]int{
		"localhost": 200, "LOCALHOST:8080": 200, "app.localhost": 200, "127.0.0.1:1": 200, "127.9.9.9": 200, "[::1]:8080": 200, "[::1]": 200, "localhost.": 200,
		"localhost.evil.example": 403, "127.0.0.1.evil.example": 403, "192.0.2.1": 403, "evil": 403,
	} {
		if a := f.do("GET", "/health", "", "Host", host); a.status != want {
			t.Errorf("%s: %d", host, a.status)
		}
	}
}

func TestReadinessNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	draining, missing := false, error(nil)
	f := openFabric(t, func(o *Options) {
		o.Draining = func() bool { return draining }
		o.Ready = func() error { return missing }
	})
	missing = errors.New("NATS is DISCONNECTED")
	a := f.do("GET", "/readyz", "")
	if p := problemOf(t, a); a.status != 503 || !strings.Contains(p.Detail, "NATS is DISCONNECTED") {
		t.Errorf("%s", a.body)
	}
	draining = true
	a = f.do("GET", "/readyz", "")
	if p := problemOf(t, a); a.status != 503 || !strings.Contains(p.Detail, "draining") {
		t.Errorf("%s", a.body)
	}
	if a := f.do("GET", "/livez", ""); a.status != 200 {
		t.Errorf("livez: %d", a.status)
	}
}

func TestTheLogLineOfARequestNamesItsCallAndItsTrace(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	r := httptest.NewRequest("POST", "http://127.0.0.1/servers/demo/tools/echo", strings.NewReader(`{"message":"hi"}`))
	r.Header.Set("Traceparent", "00-"+trace+"-00f067aa0ba902b7-01")
	answer := httptest.NewRecorder()
	f.api.ServeHTTP(answer, r)
	if answer.Code != http.StatusOK {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	if want := "call=" + answer.Header().Get("Callyard-Call-Id") + " trace=" + trace; !strings.Contains(f.Logged.String(), want) {
		t.Errorf("%q is not in the log:\n%s", want, f.Logged.String())
	}
}

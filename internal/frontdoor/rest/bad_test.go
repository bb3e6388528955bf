package rest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// secret is in requests whose answers must not repeat it.
const secret = "hunter2-canary"

func TestBadInputReturnsItsProblemWithoutEchoingIt(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	const call = "/servers/demo/tools/strict"
	deep := strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70)
	for _, row := range []struct {
		name, method, path, body string
		header                   []string
		status                   int
		kind, says               string
	}{
		{"not JSON", "POST", call, `{"n":` + secret, nil, 400, "invalid-request", "byte 5"},
		{"two values", "POST", call, `{"n":1} {}`, nil, 400, "invalid-request", "unexpected data follows"},
		{"duplicate key", "POST", call, `{"n":1,"\u006e":2}`, nil, 400, "invalid-request", "twice"},
		{"duplicate key inside", "POST", call, `{"n":1,"o":{"a":1,"a":2}}`, nil, 400, "invalid-request", "(/o/a)"},
		{"too deep", "POST", call, deep, nil, 400, "invalid-request", "nesting exceeds"},
		{"invalid UTF-8", "POST", call, "{\"n\":\"\xff" + secret + "\"}", nil, 400, "invalid-request", "UTF-8"},
		{"an array", "POST", call, `["` + secret + `"]`, nil, 400, "invalid-request", "an array"},
		{"null", "POST", call, `null`, nil, 400, "invalid-request", "null"},
		{"only white space", "POST", call, "  ", nil, 400, "invalid-request", "missing"},
		{"byte order mark", "POST", call, "\xef\xbb\xbf{}", nil, 400, "invalid-request", "byte order mark"},
		{"wrong type", "POST", call, `{"n":"` + secret + `"}`, nil, 422, "invalid-arguments", `"/n"`},
		{"missing and unknown", "POST", call, `{"m":"` + secret + `"}`, nil, 422, "invalid-arguments", "schema"},
		{"without body", "POST", call, ``, nil, 422, "invalid-arguments", "schema"},
		{"oversize", "POST", call, `{"s":"` + strings.Repeat("x", 64<<10) + `"}`, nil, 413, "too-large", "limit"},
		{"form", "POST", call, `{"n":1}`, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "unsupported-media-type", "curl --json"},
		{"text", "POST", call, `{"n":1}`, []string{"Content-Type", "text/plain"}, 415, "unsupported-media-type", "curl --json"},
		{"Content-Type is not a media type", "POST", call, `{"n":1}`, []string{"Content-Type", ";;"}, 415, "unsupported-media-type", "curl --json"},
		{"unknown server", "POST", "/servers/nope/tools/echo", `{}`, nil, 404, "not-found", "nope"},
		{"unknown tool", "POST", "/servers/demo/tools/nope", `{}`, nil, 404, "not-found", "nope"},
		{"server without a worker", "POST", "/servers/dead/tools/echo", `{}`, nil, 503, "unavailable", "exited with code 3"},
		{"broken schema", "POST", "/servers/demo/tools/broken", `{}`, nil, 502, "server-failed", "schema"},
		{"timeout is not a number", "POST", call + "?timeout_ms=soon", `{"n":1}`, nil, 400, "invalid-request", "whole number"},
		{"timeout is empty", "POST", call + "?timeout_ms=", `{"n":1}`, nil, 400, "invalid-request", "whole number"},
		{"timeout is zero", "POST", call + "?timeout_ms=0", `{"n":1}`, nil, 400, "invalid-request", "between 1 and 60000"},
		{"timeout too long", "POST", call, `{"n":1}`, []string{"Callyard-Timeout-Ms", "60001"}, 400, "invalid-request", "between 1 and 60000"},
		{"two timeouts", "POST", call + "?timeout_ms=1&timeout_ms=2", `{"n":1}`, nil, 400, "invalid-request", "send it once"},
		{"unknown parameter", "POST", call + "?dry_run=1", `{"n":1}`, nil, 400, "invalid-request", "timeout_ms"},
		{"bad query", "POST", call + "?a=%zz", `{"n":1}`, nil, 400, "invalid-request", "percent-encode"},

		{"call without body", "POST", "/calls", ``, nil, 400, "invalid-request", "empty"},
		{"call is a list", "POST", "/calls", `[]`, nil, 400, "invalid-request", "not a JSON object"},
		{"call is null", "POST", "/calls", `null`, nil, 400, "invalid-request", "not a JSON object"},
		{"call with a member in the wrong letter case", "POST", "/calls", `{"Server":"demo","tool":"echo"}`, nil, 400, "invalid-request", "did you mean server"},
		{"call with an unknown member", "POST", "/calls", `{"server":"demo","tool":"echo","` + "args" + `":{"p":"` + secret + `"}}`, nil, 400, "invalid-request", `"/args"`},
		{"call with a duplicate member", "POST", "/calls", `{"server":"demo","tool":"echo","tool":"strict"}`, nil, 400, "invalid-request", "twice"},
		{"call without tool", "POST", "/calls", `{"server":"demo"}`, nil, 400, "invalid-request", "tool is missing"},
		{"call with a number as tool", "POST", "/calls", `{"server":"demo","tool":7}`, nil, 400, "invalid-request", "must be a string"},
		{"call with null as server", "POST", "/calls", `{"server":null,"tool":"echo"}`, nil, 400, "invalid-request", "must be a string"},
		{"call with a time as text", "POST", "/calls", `{"server":"demo","tool":"echo","timeout_ms":"5"}`, nil, 400, "invalid-request", "not a string"},
		{"call with a fraction", "POST", "/calls", `{"server":"demo","tool":"echo","timeout_ms":1.5}`, nil, 400, "invalid-request", "whole number"},
		{"call with null arguments", "POST", "/calls", `{"server":"demo","tool":"echo","arguments":null}`, nil, 400, "invalid-request", "null"},
		{"call with text as arguments", "POST", "/calls", `{"server":"demo","tool":"echo","arguments":"` + secret + `"}`, nil, 400, "invalid-request", "a string"},
		{"call with arguments over the limit", "POST", "/calls", `{"server":"demo","tool":"echo","arguments":{"s":"` + strings.Repeat("x", 66<<10) + `"}}`, nil, 413, "too-large", "limit"},
		{"call with bad arguments", "POST", "/calls", `{"server":"demo","tool":"strict","arguments":{"n":"` + secret + `"}}`, nil, 422, "invalid-arguments", `"/n"`},

		{"switch without body", "PATCH", call, ``, nil, 400, "invalid-request", "empty"},
		{"switch is a string", "PATCH", call, `{"enabled":"` + secret + `"}`, nil, 400, "invalid-request", "true or false"},
		{"switch without enabled", "PATCH", call, `{"reason":"x"}`, nil, 400, "invalid-request", "enabled is missing"},
		{"switch with an unknown member", "PATCH", call, `{"enabled":true,"Reason":"x"}`, nil, 400, "invalid-request", "did you mean reason"},
		{"switch with a long reason", "PATCH", call, `{"enabled":true,"reason":"` + strings.Repeat("x", 1001) + `"}`, nil, 400, "invalid-request", "1001 bytes"},
		{"switch of an unknown tool", "PATCH", "/servers/demo/tools/nope", `{"enabled":true}`, nil, 404, "not-found", "nope"},

		{"prompt with a number", "POST", "/servers/demo/prompts/greet", `{"a":7,"b":"x"}`, nil, 422, "invalid-arguments", `"/a"`},
		{"prompt of an unknown server", "POST", "/servers/nope/prompts/greet", `{}`, nil, 404, "not-found", "nope"},
		{"resource of an unknown server", "GET", "/servers/nope/resources/a", ``, nil, 404, "not-found", "nope"},
		{"resource without a name", "GET", "/servers/demo/resources?uri=", ``, nil, 400, "invalid-request", "URI"},
		{"resource with a control character", "GET", "/servers/demo/resources/dem%00o:%2F%2Fone", ``, nil, 400, "invalid-request", "U+0000 at byte 3"},
		{"resource that cannot be printed", "GET", "/servers/demo/resources?uri=a%F3%A0%80%81", ``, nil, 400, "invalid-request", "percent-encode"},
		{"resource with invalid UTF-8", "GET", "/servers/demo/resources?uri=a%ff", ``, nil, 400, "invalid-request", "not valid UTF-8"},
		{"timeout for a list", "GET", "/servers/demo/resources?timeout_ms=5", ``, nil, 400, "invalid-request", "only with uri"},
		{"tools of a server without a worker", "GET", "/servers/dead/tools", ``, nil, 503, "unavailable", "exited with code 3"},
		{"tools of an unknown server", "GET", "/servers/nope/tools", ``, nil, 404, "not-found", "nope"},
		{"one unknown server", "GET", "/servers/nope", ``, nil, 404, "not-found", "nope"},
		{"tools filtered by an unknown server", "GET", "/tools?server=nope", ``, nil, 404, "not-found", "nope"},

		{"limit is zero", "GET", "/tools?limit=0", ``, nil, 400, "invalid-request", `"parameter":"limit"`},
		{"limit is not a number", "GET", "/tools?limit=" + secret, ``, nil, 400, "invalid-request", `"parameter":"limit"`},
		{"unknown format", "GET", "/tools?format=" + secret, ``, nil, 400, "invalid-request", `"parameter":"format"`},
		{"cursor of another list", "GET", "/tools?cursor=" + secret, ``, nil, 400, "invalid-request", "cursor"},
		{"unknown parameter of a list", "GET", "/servers?verbose=1", ``, nil, 400, "invalid-request", "verbose"},
		{"unknown parameter of events", "GET", "/events?since=1", ``, nil, 400, "invalid-request", "include"},

		{"no such path", "GET", "/nope", ``, nil, 404, "not-found", "/docs"},
		{"trailing slash", "GET", "/servers/", ``, nil, 404, "not-found", "/docs"},
		{"two slashes", "GET", "//servers", ``, nil, 404, "not-found", "/docs"},
		{"dots", "GET", "/x/../servers", ``, nil, 404, "not-found", "/docs"},
		{"wrong method", "DELETE", "/calls", ``, nil, 405, "method-not-allowed", "POST"},
		{"unknown method", "BREW", "/servers", ``, nil, 405, "method-not-allowed", "GET, HEAD, POST"},
		{"options", "OPTIONS", call, ``, nil, 405, "method-not-allowed", "POST, PATCH"},
		{"no such problem", "GET", "/problems/nope", ``, nil, 404, "not-found", "outcome-unknown"},
		{"no such file of the docs", "GET", "/docs/nope.js", ``, nil, 404, "not-found", ""},
		{"page of another origin", "POST", call, `{"n":1}`, []string{"Origin", "http://evil.example"}, 403, "forbidden", "origin"},
		{"page of another site", "POST", call, `{"n":1}`, []string{"Sec-Fetch-Site", "cross-site"}, 403, "forbidden", "origin"},
		{"name of another host", "GET", "/servers", ``, []string{"Host", "evil.example"}, 403, "forbidden", "loopback"},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := f.do(row.method, row.path, row.body, row.header...)
			p := problemOf(t, a)
			if a.status != row.status || p.Type != "/problems/"+row.kind {
				t.Errorf("status %d, type %s; want %d %s\n%s", a.status, p.Type, row.status, row.kind, a.body)
			}
			if !strings.Contains(strings.ReplaceAll(string(a.body), `\"`, `"`), row.says) {
				t.Errorf("does not say %q: %s", row.says, a.body)
			}
			if bytes.Contains(a.body, []byte(secret)) {
				t.Errorf("repeats what was sent: %s", a.body)
			}
			if a.status == 405 && a.header.Get("Allow") == "" {
				t.Error("no Allow header")
			}
			if strings.Contains(row.path, "/tools/") && row.method == "POST" && a.status != 403 && !strings.Contains(row.path, "?") && p.CallID == "" {
				t.Error("no call id")
			}
		})
	}
	if strings.Contains(f.Logged.String(), secret) {
		t.Error("the log repeats what was sent")
	}
	if n := f.Worker.Count(); n != 0 {
		t.Errorf("%d of these calls reached a worker", n)
	}
}

// Huma's parser of this header panics if a weight is missing.
func TestAnyAcceptHeaderIsAnsweredWithJSON(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	for _, accept := range []string{";,", "a;,b", ";", ",", "application/json;,", "text/html;q=,x", "*/*;q=9", "image/png", "\xff\xfe;,"} {
		a := f.do("GET", "/version", "", "Accept", accept)
		if a.status != 200 || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("Accept: %q is answered with %d %s", accept, a.status, a.header.Get("Content-Type"))
		}
	}
}

func TestAChunkedBodyOverTheLimitIsRefused(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	r := f.request("POST", "/servers/demo/tools/echo", io.MultiReader(strings.NewReader(`{"a":"`), strings.NewReader(strings.Repeat("x", 64<<10)), strings.NewReader(`"}`)))
	if a := f.send(r); problemOf(t, a).Type != "/problems/too-large" {
		t.Errorf("%s", a.body)
	}
	r = f.request("POST", "/servers/demo/tools/echo", io.MultiReader(strings.NewReader(`{"a":`), strings.NewReader(`1}`)))
	if a := f.send(r); a.status != 200 || !strings.Contains(string(a.body), `"got":{"a":1}`) {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestTruncatedBodyReturnsAProblem(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	host := strings.TrimPrefix(f.url, "http://")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = fmt.Fprintf(conn, "POST /servers/demo/tools/echo HTTP/1.1\r\nHost: %s\r\nContent-Length: 10\r\n\r\n{}", host)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, _ := io.ReadAll(res.Body)
	if p := problemOf(t, answer{res.StatusCode, res.Header, body}); p.Type != "/problems/invalid-request" {
		t.Errorf("%s", body)
	}
}

func TestPanicReturnsAProblemWithoutInternals(t *testing.T) {
	t.Parallel()
	f := openFabric(t, func(o *Options) {
		o.AllowAddServers = true
		o.AddServer = func(context.Context, string, json.RawMessage) (catalog.Server, error) { panic("boom " + secret) }
		o.RemoveServer = nil
	})
	a := f.do("POST", "/servers", `{"id":"x"}`)
	p := problemOf(t, a)
	if p.Type != "/problems/internal" || !strings.Contains(p.Detail, a.header.Get("X-Request-Id")) {
		t.Errorf("%s", a.body)
	}
	if strings.Contains(string(a.body), "boom") || strings.Contains(string(a.body), "goroutine") {
		t.Errorf("tells internals: %s", a.body)
	}
	if !strings.Contains(f.Logged.String(), "boom") || !strings.Contains(f.Logged.String(), "goroutine") {
		t.Error("the log does not tell the panic and its stack")
	}
}

func TestEveryErrorKindHasAProblemType(t *testing.T) {
	table := make(map[schema.Kind]problem.Row)
	for _, row := range problem.Rows() {
		table[row.Kind] = row
	}
	for _, k := range []schema.Kind{
		schema.KindInvalidRequest, schema.KindUnauthenticated, schema.KindForbidden, schema.KindDisabled, schema.KindNotFound, schema.KindConflict,
		schema.KindTooLarge, schema.KindInvalidArguments, schema.KindQuota, schema.KindUnavailable, schema.KindServerFailed, schema.KindProtocol,
		schema.KindResultTooLarge, schema.KindInputRequired, schema.KindOutcomeUnknown, schema.KindCanceled, schema.KindInternal,
	} {
		if row := table[k]; row.Title == "" || row.Meaning == "" || row.Fix == "" || row.Status < 400 {
			t.Errorf("%s: %+v", k, row)
		}
	}
}

func FuzzCallBodyNeverCausesAnInternalError(f *testing.F) {
	for _, seed := range []string{
		`{"server":"demo","tool":"echo"}`, `{"server":"demo","tool":"strict","arguments":{"n":1},"timeout_ms":5}`, `{}`, `null`, `[1]`, `{"server":1}`,
		`{"timeout_ms":1e400,"server":"","tool":""}`, "\xef\xbb\xbf{}", `{"arguments":{"a":{"a":{}}}}`, `{"server":"demo","tool":"echo","timeout_ms":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		members, err := httpapi.ReadObject(body, 1<<16, 64, "server", "tool", "arguments", "timeout_ms")
		if err != nil {
			if k := schema.KindOf(err); k != schema.KindInvalidRequest && k != schema.KindTooLarge {
				t.Fatalf("kind %s: %v", k, err)
			}
			return
		}
		for name, member := range members {
			if !bytes.Contains(body, member) {
				t.Fatalf("member %q did not come out as it is", name)
			}
		}
	})
}

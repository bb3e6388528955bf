package console_test

import (
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/console"
)

const echoTool = `{"server":"demo","name":"a/b","enabled":true,"definition":{"name":"a/b","description":"Says <it>.","annotations":{"readOnlyHint":true},` +
	`"inputSchema":{"type":"object","properties":{"message":{"type":"string"},"n":{"type":"integer","default":90071992547409931},"tags":{"type":"array","items":{"type":"string"}}},"required":["message"]}}}`

func toolDoor(t *testing.T, answer string) *door {
	t.Helper()
	return openDoor(t, map[string]string{
		"GET /tools": `{"tools":[` + echoTool + `]}`, "GET /sets": `{"sets":[]}`,
		"GET /preflight":                 `{"ready":true,"tools":[{"server":"demo","tool":"a/b","state":"ready","ready":true,"pinned":false,"digest":"sha256:d","risk":"low","decision":"run"}]}`,
		"POST /servers/demo/tools/a%2Fb": answer, "PATCH /servers/demo/tools/a%2Fb": `{"server":"demo","name":"a/b","enabled":false,"at":"2026-01-01T00:00:00Z"}`,
	})
}

// editor returns the text of a page's editor, as a browser would send it.
func editor(t *testing.T, p page) string {
	t.Helper()
	m := regexp.MustCompile(`(?s)<textarea class="code" id="arguments"[^>]*>\n(.*?)</textarea>`).FindStringSubmatch(p.body)
	if m == nil {
		t.Fatalf("there is no editor in:\n%s", p.body)
	}
	return html.UnescapeString(m[1])
}

func TestToolsAreSearchedAndListed(t *testing.T) {
	d := toolDoor(t, "")
	d.set("GET /tools/search", `{"ranking":"x","searched":9,"unmatched":["zebra"],"tools":[{"server":"demo","tool":"a/b","score":1,"risk":"medium","decision":"sandbox","signature":"a/b(message: string)","summary":"Says it."}]}`)
	k := openDesk(t, d, nil)
	k.get("/console/tools").has(t, `href="/console/tool?server=demo&amp;tool=a%2Fb"`, "Says &lt;it&gt;.", "Runs", "Low risk")
	k.get("/console/tools?q=say+zebra&server=demo").has(t, "a/b(message: string)", "<q>zebra</q>", "Runs in a sandbox", "Medium risk")
	if got := d.last("GET /tools/search").query; got != "q=say+zebra&server=demo&limit=50" {
		t.Errorf("the search is %q", got)
	}
}

func TestEditedCallIsSentUnchanged(t *testing.T) {
	d := toolDoor(t, `{"content":[{"type":"text","text":"<script>x</script>\u202e"},{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="},{"type":"image","mimeType":"image/svg+xml","data":"PHN2Zz4="},{"type":"resource_link","uri":"javascript:alert(1)","name":"l"},{"type":"resource_link","uri":"https://example.com/x","name":"m"}],"structuredContent":{"n":90071992547409931}}`)
	k := openDesk(t, d, nil)
	p := k.get("/console/tool?server=demo&tool=a%2Fb")
	if got := editor(t, p); got != "{\n  \"message\": \"\",\n  \"n\": 90071992547409931\n}" {
		t.Errorf("the defaults are %s", got)
	}
	p.has(t, "read-only", "sha256:d")

	p = k.post("/console/tool", "server", "demo", "tool", "a/b", "do", "compose", "f.a.0", "hi \"you\"\r\n&", "f.a.1", "1.50", "f.a.2.n", "1", "f.a.2.0", "x")
	composed := editor(t, p)
	if composed != "{\n  \"message\": \"hi \\\"you\\\"\\n&\",\n  \"n\": 1.50,\n  \"tags\": [\n    \"x\"\n  ]\n}" {
		t.Errorf("the form makes %s", composed)
	}
	p = k.post("/console/tool", "server", "demo", "tool", "a/b", "do", "grow:a.2", "f.a.0", "m", "f.a.2.n", "1", "f.a.2.0", "x")
	p.has(t, `name="f.a.2.n" value="2"`, `name="f.a.2.1"`)

	raw := " {\"message\" : \"\\u0041\", \"n\":1e2 , \"other\":null}\t"
	p = k.post("/console/tool", "server", "demo", "tool", "a/b", "do", "run", "arguments", raw)
	if got := d.last("POST /servers/demo/tools/a%2Fb").body; got != raw {
		t.Errorf("the front door got %q", got)
	}
	p.has(t, "&lt;script&gt;x&lt;/script&gt;", "U+202E", "data:image/png;base64,iVBORw0KGgo=", `href="https://example.com/x"`, "90071992547409931")
	p.hasNot(t, "<script>x", "data:image/svg", `href="javascript`)
	if csp := p.header.Get("Content-Security-Policy"); !strings.Contains(csp, "img-src 'self' data:") {
		t.Errorf("the policy of a page with an image is %q", csp)
	}

	p = k.post("/console/tool", "server", "demo", "tool", "a/b", "do", "fill", "arguments", raw)
	p.has(t, "cannot show everything", ">\nA</textarea>", `value="1e2"`)
	if p = k.post("/console/tool", "server", "demo", "tool", "a/b", "do", "fill", "arguments", "{"); p.status != http.StatusUnprocessableEntity || editor(t, p) != "{" {
		t.Errorf("no JSON: %d", p.status)
	}
}

func TestResubmittedFormMakesOneCall(t *testing.T) {
	d := toolDoor(t, `{"content":[]}`)
	k := openDesk(t, d, nil)
	once := func(p page) string {
		return regexp.MustCompile(`name="once" value="([^"]*)"`).FindStringSubmatch(p.body)[1]
	}
	var pages []page
	key := func(once, arguments string) string {
		pages = append(pages, k.post("/console/tool", "server", "demo", "tool", "a/b", "do", "run", "once", once, "arguments", arguments))
		return d.last("POST /servers/demo/tools/a%2Fb").header.Get("Idempotency-Key")
	}
	first := once(k.get("/console/tool?server=demo&tool=a%2Fb"))
	one := key(first, "{}")
	if one == "" || key(first, "{}") != one || key(first, `{"n":1}`) == one {
		t.Errorf("the key of a page is %q", one)
	}
	if next := once(pages[0]); next == first || next == "" || key(next, "{}") == one {
		t.Error("the page with the result cannot run the call again")
	}
	for _, bad := range []string{"", "a\nb", strings.Repeat("A", 65)} {
		if got := key(bad, "{}"); got != "" {
			t.Errorf("%q makes the key %q", bad, got)
		}
	}
}

func TestFormattedJSONIsBoundedInSize(t *testing.T) {
	if got := console.Pretty(`{"a":"<&>","n":1e2}`); got != "{\n  \"a\": \"<&>\",\n  \"n\": 1e2\n}" {
		t.Errorf("it is %s", got)
	}
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	if got := console.Pretty(deep); got != deep {
		t.Errorf("%d bytes became %d", len(deep), len(got))
	}
}

func TestComposeRequestsReuseTheCachedSchema(t *testing.T) {
	d := toolDoor(t, "")
	k := openDesk(t, d, nil)
	form := url.Values{"token": {"token of /console/tool"}, "server": {"demo"}, "tool": {"a/b"}, "do": {"compose"}, "f.a.0": {"hi"}}
	for range 2 {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/console/tool", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("X-Callyard-Part", "arguments")
		if p := k.do(r); p.body != `{"arguments":"{\n  \"message\": \"hi\"\n}","faults":[]}` {
			t.Errorf("%d %s", p.status, p.body)
		}
	}
	if len(d.asked) != 1 {
		t.Errorf("the front door was asked %d times", len(d.asked))
	}
}

func TestRefusedAndHeldCallsAreReported(t *testing.T) {
	d := toolDoor(t, "!invalid-arguments The arguments are wrong.")
	k := openDesk(t, d, nil)
	p := k.post("/console/tool", "server", "demo", "tool", "a/b", "do", "run", "arguments", `{"x":1}`)
	p.has(t, "The arguments are wrong.")
	if editor(t, p) != `{"x":1}` {
		t.Error("what was typed is lost")
	}
	d.set("POST /servers/demo/tools/a%2Fb", `{"outcome":"held","approval_id":"appr_1","call_id":"call_1","server_id":"demo","tool_name":"a/b","method":"tools/call","requires_confirmation":true,"risk_level":2,"risk_description":"m","expires_at":"2026-01-01T00:00:00Z","reasons":["It <deletes>."]}`)
	k.post("/console/tool", "server", "demo", "tool", "a/b", "do", "run", "arguments", "{}").has(t, "The call is held.", "It &lt;deletes&gt;.", `href="/a/appr_1"`)
}

func TestAToolIsDisabledWithAReason(t *testing.T) {
	d := toolDoor(t, "")
	k := openDesk(t, d, nil)
	p := k.post("/console/tool/switch", "server", "demo", "tool", "a/b", "to", "off", "reason", " It is <broken>. ")
	if got := d.last("PATCH /servers/demo/tools/a%2Fb").body; p.status != http.StatusSeeOther || got != `{"enabled":false,"reason":"It is \u003cbroken\u003e."}` {
		t.Errorf("%d %s", p.status, got)
	}
	k.get(p.header.Get("Location")).has(t, "The tool is disabled.")
	d.set("PATCH /servers/demo/tools/a%2Fb", "!forbidden Your key lacks the scope admin.")
	if p = k.post("/console/tool/switch", "server", "demo", "tool", "a/b", "to", "off", "reason", "It is <broken>."); p.status != http.StatusForbidden {
		t.Errorf("%d", p.status)
	}
	p.has(t, "Your key lacks the scope admin.", "Try it", `name="reason" maxlength="500" value="It is &lt;broken&gt;."`)
}

func TestCopiedCurlCommandQuotesArguments(t *testing.T) {
	if got := console.Copies("http://x:1", "s", "t", `{"a":"it's"}`)[0]; got != "curl -sS --fail-with-body http://x:1/servers/s/tools/t \\\n  --json '{\"a\":\"it'\\''s\"}'" {
		t.Errorf("curl: %s", got)
	}
}

// Enter in a field presses the first button of its form.
func TestEnterInAFieldNeitherAddsAnItemNorSettlesACall(t *testing.T) {
	first := regexp.MustCompile(`(?s)<form [^>]*data-compose>.*?(<button [^>]*>)`)
	k := openDesk(t, toolDoor(t, ""), nil)
	for _, p := range []page{k.get("/console/tool?server=demo&tool=a%2Fb"), k.post("/console/tool", "server", "demo", "tool", "a/b", "do", "grow:a.2", "f.a.2.n", "1")} {
		p.has(t, `value="grow:a.2"`)
		if got := first.FindStringSubmatch(p.body); got == nil || !strings.Contains(got[1], `value="compose"`) {
			t.Errorf("Enter presses %q", got)
		}
	}
	k = openDesk(t, openDoor(t, map[string]string{
		"GET /calls":        `{"calls":[]}`,
		"GET /calls/call_3": `{"id":"call_3","state":"unknown","server":"demo","tool":"echo","created":"2026-11-26T02:00:00Z","ended":"2026-11-26T02:00:03Z"}`,
	}), nil)
	p := k.get("/console/call?id=call_3")
	p.has(t, `<textarea name="reason"`, "It has run")
	p.hasNot(t, `<input name="reason"`)
}

// A server chooses the names of its tools. With the name --url=ADDRESS, the copied command would send the
// key of its user there.
func TestNameOfAToolIsNoFlagOfTheCopiedCommand(t *testing.T) {
	if got := console.Copies("http://x:1", "s", "--url=http://y:2", `{}`)[1]; got != "callyard --url http://x:1 call -- s '--url=http://y:2' '{}'" {
		t.Error(got)
	}
	if got := console.Copies("http://x:1", "s", "t", `{}`)[1]; got != "callyard --url http://x:1 call s t '{}'" {
		t.Error(got)
	}
}

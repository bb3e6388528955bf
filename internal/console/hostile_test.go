package console_test

import (
	"encoding/json"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/callyard/callyard/internal/console"
)

// attacks lists texts that a server or a caller may send in any field.
var attacks = []string{
	`<script>attack()</script>`, `"><img src=x onerror=attack()>`, `'"><svg/onload=attack()>`, `javascript:attack()`, `</textarea><script>attack()</script>`, `</title><script>attack()</script>`,
	`</pre></code></details><iframe src="https://evil.example">`, `" autofocus onfocus="attack()`, `{{.Page}}{{template "page"}}`, `<!--<script>`, `]]><script>attack()</script>`, `<a href="https://evil.example">here</a>`,
	`<form action="https://evil.example"><input name=key>`, `<meta http-equiv="refresh" content="0;url=https://evil.example">`, `<base href="https://evil.example/">`, `<style>*{display:none}</style>`, "\u202e<b>\u0000\u2028", `&lt;script&gt;attack()&lt;/script&gt;`,
}

// allowed lists the elements of our pages. Each is inert, or checked with its source below.
var allowed = strings.Fields("html head meta title link script body a header div p img span nav form input button main h1 h2 h3 h4 ul ol li section aside table thead tbody tr th td label select option textarea dl dt dd details summary pre code strong br q fieldset legend progress noscript b ins del mark figure figcaption time svg rect polyline line")

// checkEscaped fails the test if a text of others has become markup.
func checkEscaped(t *testing.T, path, body string) {
	t.Helper()
	z := html.NewTokenizer(strings.NewReader(body))
	for {
		switch z.Next() {
		case html.ErrorToken:
			if z.Err() != io.EOF {
				t.Fatal(z.Err())
			}
			return
		case html.StartTagToken, html.SelfClosingTagToken:
			tag := z.Token()
			if !slices.Contains(allowed, tag.Data) {
				t.Errorf("%s: the page has an element %s", path, tag)
			}
			for _, a := range tag.Attr {
				value := strings.ToLower(strings.TrimSpace(a.Val))
				switch {
				case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "srcdoc":
					t.Errorf("%s: the page has %s", path, tag)
				case a.Key == "src" && !strings.HasPrefix(value, "/static/") && !strings.HasPrefix(value, "data:image/png;base64,"), a.Key == "action" && !strings.HasPrefix(value, "/"),
					a.Key == "href" && !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "#"), a.Key == "formaction", a.Key == "http-equiv":
					t.Errorf("%s: the page leads elsewhere: %s", path, tag)
				}
			}
			if tag.Data == "script" && (z.Next() != html.EndTagToken) {
				t.Errorf("%s: a script is in line", path)
			}
		}
	}
}

// texts replaces every string of a document, and the names of free-form members.
func texts(v any, attack string) any {
	switch v := v.(type) {
	case string:
		return attack
	case []any:
		for i := range v {
			v[i] = texts(v[i], attack)
		}
	case map[string]any:
		for name, inner := range v {
			switch name {
			case "created", "ended", "started", "expires_at", "at", "since", "tried", "outcome", "origin", "created_at", "changed_at", "rotated_at", "last_used_at", "until", "began_at", "checked_at", "from", "to", "start", "began", "ended_at": // not free-form
			case "labels", "properties", "outcomes", "masked":
				v[name] = map[string]any{attack: inner.(map[string]any)["x"]}
				texts(inner, attack)
			default:
				v[name] = texts(inner, attack)
			}
		}
	}
	return v
}

// everything has a response of each operation with every member that pages show.
var everything = map[string]string{
	"GET /front-doors": `{"fabric":{"workers":1,"approvals":1,"batches":1,"disagreements":1},"front_doors":[{"id":"x","version":"x","region":"x","draining":true}]}`,
	"GET /servers":     `{"servers":[` + badServer + `]}`,
	"GET /servers/s": `{"id":"s","connected":true,"pid":7,"initialization_state":"x","transport":"x","title":"x","version":"x","protocol_version":"x","risk_description":"x","pin":"x","error":"x","stderr_tail":"x","tools":1,"changed_tools":["x"],
		"sandbox":{"docker_image":"x","error":"x","isolation":"x","only":false,"ready":false},"worker_count":1,"workers":[{"id":"x","initialization_state":"x","error":"x","pid":1,"slots":1,"sessions":1,"restarts":1,"draining":true}],"slots":8,"in_flight":2,"waiting":1}`,
	"GET /servers/s/pins": `{"pin":"x","server":"x","tools":[{"name":"x","state":"x","digest":"x","definition":{"a":"x"},"accepted_definition":{"a":"y"},"accepted_by":"x"}]}`,
	"GET /tools":          `{"tools":[{"server":"s","name":"t","enabled":false,"reason":"x","offline":"x","changed":"x","definition":{"name":"x","title":"x","description":"x","annotations":{"title":"x"},"inputSchema":{"type":"object","properties":{"x":{"type":"string","description":"x","default":"x","title":"x","pattern":"x","format":"x"}}},"outputSchema":{"a":"x"}}}],"unknown":["x"],"quarantined":[{"server":"x","name":"x"}]}`,
	"GET /tools/search":   `{"ranking":"x","searched":1,"unknown":["x"],"unmatched":["x"],"tools":[{"server":"x","tool":"x","score":1,"risk":"x","decision":"x","signature":"x","summary":"x"}]}`,
	"GET /preflight":      `{"ready":false,"tools":[{"server":"x","tool":"x","state":"x","ready":false,"pinned":true,"risk":"x","decision":"x","reason":"x","digest":"x"}]}`,
	"GET /workers":        `{"workers":[{"id":"x","name":"x","host":"x","pid":3,"version":"x","draining":false,"in_flight":4,"api_servers":false,"started":"2026-01-01T00:00:00Z","labels":{"x":"x"},"servers":[]}]}`,
	"GET /configuration":  `{"processes":[{"id":"x","role":"x","parts":[{"part":"policy","version":"x","outcome":"loaded","since":"2026-01-01T00:00:00Z","tried":"2026-01-01T00:00:00Z"}]}],"disagreements":[{"part":"x","server":"x","versions":[]}]}`,
	"GET /version":        `{"version":"x","go":"x","started":"2026-01-01T00:00:00Z"}`,
	"GET /calls":          `{"calls":[{"id":"x","state":"x","server":"x","tool":"x","method":"x","principal":"x","owner":"x","arguments_digest":"x","arguments_bytes":1,"result_bytes":1,"result_digest":"x","created":"2026-11-26T02:00:00Z","worker":"x","front_door":"x","attempt":1,"decision":"x","rule":"x","trace_id":"x","error":{"kind":"x","detail":"x"}}],"next":"x"}`,
	"GET /calls/c": `{"id":"x","state":"x","server":"x","tool":"x","created":"2026-11-26T02:00:00Z","approval_id":"x","batch_id":"x","custom_id":"x","replay_of":"x","trace_id":"x","arguments":{"x":"x"},"worker":"x","reasons":["x"],"settled":"x","decisions":[{"at":"2026-11-26T02:00:00Z","by":"x","kind":"x","reason":"x"}],
		"problem":{"type":"x","title":"x","status":500,"detail":"x","error":"x","retryable":false},"result":{"content":[{"type":"text","text":"x"},{"type":"image","mimeType":"x","data":"x"},{"type":"resource_link","uri":"x","name":"x"},{"type":"resource","resource":{"uri":"x","text":"x","mimeType":"x"}},{"type":"x","x":"x"}],"structuredContent":{"x":"x"}}}`,
	"POST /policy/dry-run":   `{"policy_version":"x","since":"2026-01-01T00:00:00Z","until":"2026-01-01T00:00:00Z","calls":1,"changed":1,"not_judged":1,"unknown":{"total":1,"arguments":1,"groups":1,"tools":1},"rules":[{"rule":"x","allowed":1,"held":1,"refused":1,"unknown":1,"changed":1}],"changes":[{"id":"x","server":"x","tool":"x","principal":"x","created":"2026-11-26T02:00:00Z","was":"x","now":"x","now_rule":"x"}]}`,
	"POST /policy/test":      `{"decision":"x","arguments":"x","errors":[{"pointer":"x","message":"x"}],"error":{"kind":"x","detail":"x"},"policy_version":"x","risk_level":2,"rule":"x","reasons":["x"],"approval":{"by":"x","groups":["x"],"needed":2,"expires_ms":600000},"sandbox":"x","durable":true}`,
	"GET /batches":           `{"batches":[{"id":"x","state":"x","calls":3,"counts":{"waiting":1,"held":1,"succeeded":0,"tool_errors":1,"failed":1,"denied":0,"expired":0,"canceled":0,"unknown":0},"created":"2026-11-26T02:00:00Z","expires_at":"2026-11-26T02:00:00Z","labels":{"x":"x"}}],"next":"x"}`,
	"GET /batches/b":         `{"id":"x","state":"x","reason":"x","calls":3,"counts":{"waiting":1,"held":1,"succeeded":0,"tool_errors":1,"failed":1,"denied":0,"expired":0,"canceled":0,"unknown":0},"created":"2026-11-26T02:00:00Z","expires_at":"2026-11-26T02:00:00Z","labels":{"x":"x"},"refusals":[{"index":1,"custom_id":"x","detail":"x"}]}`,
	"GET /batches/b/results": `{"call_id":"x","state":"x","problem":{"type":"x","title":"x","status":500,"detail":"x","error":"x","retryable":false}}`,
	"GET /batches/b/held":    `{"calls":[{"approval_id":"x","call_id":"x","by":"x","index":3,"server":"x","tool":"x","arguments_digest":"x","expires_at":"2026-11-27T02:00:00Z","risk_level":2,"reasons":["x"]}]}`,
	"GET /sets":              `{"sets":[{"name":"x","origin":"x","definition":{"name":"x","description":"x","include":[]}}]}`,
	"GET /sets/r":            `{"name":"x","origin":"api","by":"x","definition":{"name":"x","description":"x","include":[]},"left_out":[{"name":"x","tools":[{"server":"x","tool":"x"}]}],"tools":[{"name":"x","server":"x","tool":"x","enabled":false,"reason":"x","offline":"x"}]}`,
	"GET /state":             `{"format":"x"}`,
	"PUT /state":             `{"dry_run":true,"failed":1,"etag":"x","changes":[{"part":"x","name":"x","action":"x","note":"x","done":true,"error":"x"}]}`,
	"GET /audit": `{"records":[{"writer":"x","seq":1,"prev":"x","hash":"x","kind":"x","at":"2026-11-26T02:00:00Z","tenant":"x","by":"x","owner":"x","channel":"x","credential":"x","operation":"x","path":"x","request_id":"x","status":200,"before_digest":"x","after_digest":"x","call_id":"x","approval_id":"x","batch_id":"x","server":"x","tool":"x","level":2,"policy_version":"x","rule":"x","outcome":"x","reason":"x","reason_digest":"x","arguments_digest":"x","definition_digest":"x","binding_digest":"x","result_digest":"x","worker":"x","attempt":"x","error":"x","permission_id":"x","repaired":true},
		{"writer":"x","seq":2,"prev":"x","hash":"x","kind":"x","at":"2026-11-26T02:00:00Z","server":"x","tool":"x"}],"next":"x"}`,
	"GET /audit/verification": `{"intact":false,"complete":true,"heads_compared":true,"records":3,"writers":1,"fault_count":1,"faults":[{"writer":"x","seq":3,"kind":"x","what":"x"}],"began_at":"2026-11-26T02:00:00Z","checked_at":"2026-11-26T02:00:00Z"}`,
	"GET /usage":              `{"from":"2026-11-25T02:00:00Z","to":"2026-11-26T03:00:00Z","complete":false,"total":{},"rows":[{"start":"2026-11-26T02:00:00Z","tenant":"x","key":"x","server":"x","tool":"x","calls":3,"succeeded":1,"failed":2,"held":1,"took_ms":5,"bytes_in":2000,"bytes_out":3000000}]}`,
	"GET /tenants":            `{"tenants":[` + oneTenant + `]}`,
	"GET /tenants/r":          oneTenant,
	"GET /evaluations":        `{"total":2,"evaluations":[` + oneEvaluation + `]}`,
	"GET /environments":       `{"since":"2026-11-26T02:00:00Z","environments":[` + oneEnvironment + `]}`,
	"GET /e/episodes": `{"since":"2026-11-26T02:00:00Z","environment":` + oneEnvironment + `,"curve":[{"from":"2026-11-26T02:00:00Z","to":"2026-11-26T02:00:00Z","episodes":1,"mean":-1},{"from":"2026-11-26T02:00:00Z","to":"2026-11-26T03:00:00Z","episodes":1,"mean":1}],
		"in_progress":[{"id":"x","task":"x","principal":"x","steps":1,"began":"2026-11-26T02:00:00Z"}],"recent":[{"id":"x","task":"x","principal":"x","steps":1,"began":"2026-11-26T02:00:00Z","outcome":"x","reason":"x","reward":1,"ended":"2026-11-26T02:00:00Z"}]}`,
	"GET /keys":               `{"keys":[` + oneKey + `]}`,
	"GET /keys/k":             oneKey,
	"PATCH /keys/k":           oneKey,
	"POST /keys":              strings.TrimSuffix(oneKey, "}") + `,"secret":"x"}`,
	"POST /servers/s/tools/t": `{"content":[{"type":"text","text":"x"},{"type":"image","mimeType":"x","data":"x"},{"type":"resource_link","uri":"x","name":"x","mimeType":"x"},{"type":"x","x":"x"}],"structuredContent":{"x":"x"}}`,
}

// oneEnvironment is an environment with all its members.
const oneEnvironment = `{"name":"x","isolation":"x","running":2,"limit":3,"ended":1,"outcomes":{"x":1},"masked":{"x":1},"rewards":2,"mean_reward":0,"least_reward":-1,"most_reward":1}`

// oneTenant is a tenant with all its members.
const oneTenant = `{"id":"x","servers":{"patterns":["x"],"seen":2},"sets":["x"],"policy":{"own":true,"rules":2},"limits":{"weight":2},"receivers":{"hosts":["x"],"slack_channels":1},"keys":3,"held":1,"waiting":4,"usage":{"from":"2026-11-25T02:00:00Z","to":"2026-11-26T03:00:00Z","complete":false,"calls":9,"failed":1,"tool_errors":1,"denied":1,"expired":1,"unknown":1,"held":1,"unfinished":1}}`

// oneKey is an API key with all its members.
const oneKey = `{"id":"k","name":"x","owner":"x","tenant":"x","groups":["x"],"scopes":["x"],"tools":["x"],"note":"x","origin":"api","etag":"x","created_at":"2026-01-01T00:00:00Z","created_by":"x","changed_at":"2026-01-01T00:00:00Z","changed_by":"x","rotated_at":"2026-01-01T00:00:00Z","last_used_at":"2026-01-01T00:00:00Z","expires_at":"2026-01-01T00:00:00Z","former_secrets":[{"until":"2027-01-01T00:00:00Z"}]}`

// sights lists all pages, some with parameters.
var sights = []string{"/console", "/console/key", "/console/servers", "/console/server?id=s", "/console/fleet", "/console/tools", "/console/tools?q=x", "/console/tool?server=s&tool=t", "/console/calls", "/console/call?id=c", "/console/batches", "/console/batch?id=b", "/console/policy?tools=x%2Fx", "/console/sets", "/console/sets?name=r", "/console/keys", "/console/keys/new", "/console/keys/key?id=k", "/console/tenants", "/console/tenant?id=r", "/console/audit", "/console/state", "/console/usage", "/console/usage?by=tenant&by=key&by=tool&interval=hour&period=7d", "/console/environments", "/console/environment?name=e", "/console/evaluations"}

func TestTextOfServersAndCallersIsEscaped(t *testing.T) {
	for i, attack := range attacks {
		answers := map[string]string{}
		for route, text := range everything {
			var v any
			if json.Unmarshal([]byte(text), &v) != nil {
				answers[route] = text
				continue
			}
			raw, err := json.Marshal(texts(v, attack))
			if err != nil {
				t.Fatal(err)
			}
			answers[route] = string(raw)
		}
		// The tool is found by its name, and its schema must be valid.
		quoted, _ := json.Marshal(attack)
		for _, name := range []string{`"server":"s","name":"t"`} {
			answers["GET /tools"] = `{"tools":[{` + name + `,"enabled":false,"reason":` + string(quoted) + `,"definition":{"name":"t","title":` + string(quoted) + `,"description":` + string(quoted) + `,"inputSchema":{"type":"object","description":"d","properties":{` +
				string(quoted) + `:{"type":"string","description":` + string(quoted) + `,"default":` + string(quoted) + `,"pattern":` + string(quoted) + `,"format":` + string(quoted) + `},"e":{"enum":[` + string(quoted) + `]},"v":{"anyOf":[{"title":` + string(quoted) + `,"type":"object","properties":{"q":{"type":"array","items":{"type":"string","default":` + string(quoted) + `}}}},{"type":"string"}]}}}}}]}`
		}
		d := openDoor(t, answers)
		k := openDesk(t, d, func(o *console.Options) { o.Environments = d.url })
		k.key = "cy_secret"
		seen := 0
		for _, path := range slices.Concat(sights, []string{"/console/tools?server=" + url.QueryEscape(attack), "/console/calls?server=" + url.QueryEscape(attack), "/console/calls?tenant=" + url.QueryEscape(attack), "/console/keys?tenant=" + url.QueryEscape(attack), "/console/tenants?q=" + url.QueryEscape(attack), "/console/servers?q=" + url.QueryEscape(attack), "/console/usage?by=tool&from=2026-11-25&key=" + url.QueryEscape(attack), "/console/key?next=" + url.QueryEscape(attack)}) {
			p := k.get(path)
			if p.status != 200 {
				t.Errorf("%s: %d %.200s", path, p.status, p.body)
			}
			checkEscaped(t, path, p.body)
			p.hasNot(t, "cy_secret")
			if strings.Contains(html.UnescapeString(p.body), attack) {
				seen++
			}
		}
		checkEscaped(t, "a time that is none", k.get("/console/usage?from="+url.QueryEscape(attack)+"&interval="+url.QueryEscape(attack)).body)
		p := k.post("/console/tool", "server", "s", "tool", "t", "do", "run", "arguments", attack, "f.a.0", attack, "f.a.2", "0")
		checkEscaped(t, "a tried call", p.body)
		checkEscaped(t, "a key that somebody else changed", k.post("/console/keys/key", "do", "change", "id", "k", "etag", "1", "owner", attack, "scopes", attack, "note", attack, "expires", attack).body)
		checkEscaped(t, "a state", k.post("/console/state", "file", attack, "etag", attack).body)
		checkEscaped(t, "a new key", k.post("/console/keys/new", "name", attack, "scopes", attack).body)
		checkEscaped(t, "a key that is refused", k.post("/console/keys/new", "name", attack, "owner", attack, "scopes", attack, "groups", attack, "tools", attack, "tenant", attack, "note", attack, "expires", attack).body)
		p = k.post("/console/policy", "draft", attack, "since", attack)
		checkEscaped(t, "a tried draft", p.body)
		if p = k.post("/console/policy", "do", "test", "call", "s/"+attack, "arguments", "{}", "draft", attack, "drafted", "on"); p.status != 200 || i != 16 && !strings.Contains(html.UnescapeString(p.body), attack) {
			t.Errorf("a tested call: %d", p.status)
		}
		checkEscaped(t, "a tested call", p.body)
		checkEscaped(t, "a call that cannot be tested", k.post("/console/policy", "do", "test", "call", attack, "arguments", attack, "draft", attack).body)
		if i != 16 && seen < 10 { // number 16 has characters that are shown as marks
			t.Errorf("%q is on %d pages only; does this test reach them?", attack, seen)
		}
	}
}

func TestEveryEditorSendsTheBytesThatItShows(t *testing.T) {
	raw, err := os.ReadFile("form/testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var schemas map[string]json.RawMessage
	if err := json.Unmarshal(raw, &schemas); err != nil {
		t.Fatal(err)
	}
	documents := []string{"", "{}", "\n{}", "\n\n{\n}\n", "</textarea>", "{\"a\":\"\u202e\u2028\u0000\"}", `{"n":1.0e+2,"n":007}`, "&amp;&lt;", " \t{\"deep\" : [[[]]]} ", "\ufeff{}", "{\"é\":\"漢字🙂\"}"}
	d := toolDoor(t, "{}")
	k := openDesk(t, d, nil)
	for name, schema := range schemas {
		d.set("GET /tools", `{"tools":[{"server":"demo","name":"a/b","enabled":true,"definition":{"name":"a/b","inputSchema":`+string(schema)+`}}]}`)
		shown := editor(t, k.get("/console/tool?server=demo&tool=a%2Fb"))
		for _, document := range append(documents[:1:1], shown) {
			if document == "" {
				continue
			}
			p := k.post("/console/tool", "server", "demo", "tool", "a/b", "do", "run", "arguments", strings.ReplaceAll(document, "\n", "\r\n"))
			if got := d.last("POST /servers/demo/tools/a%2Fb").body; got != document || editor(t, p) != document {
				t.Errorf("%s: %q is sent as %q and shown as %q", name, document, got, editor(t, p))
			}
		}
	}
	for _, document := range documents {
		p := k.post("/console/tool", "server", "demo", "tool", "a/b", "do", "run", "arguments", document)
		if got := d.last("POST /servers/demo/tools/a%2Fb").body; got != document || editor(t, p) != strings.ReplaceAll(document, "\u0000", "\ufffd") {
			t.Errorf("%q is sent as %q and shown as %q", document, got, editor(t, p))
		}
	}
}

func TestTheFilesOfThePagesAreSmall(t *testing.T) {
	var all int
	for _, path := range []string{"../kit/ui/ui.css", "../kit/ui/page.js", "../kit/ui/icon.svg", "static/console.css", "static/console.js"} {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all += len(raw)
	}
	if all > 60<<10 { // uncompressed, as sent
		t.Errorf("the files have %d bytes", all)
	}
	for _, path := range []string{"templates", "static"} {
		files, err := os.ReadDir(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			raw, err := os.ReadFile(path + "/" + f.Name())
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(raw), "\n"); n > 400 {
				t.Errorf("%s has %d lines", f.Name(), n)
			}
			if path == "templates" {
				for _, bad := range []string{" style=", " onclick=", "<script", "<style", "javascript:"} {
					if strings.Contains(string(raw), bad) {
						t.Errorf("%s has %q", f.Name(), bad)
					}
				}
			}
		}
	}
}

package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/callers"
	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/waits"
	"github.com/callyard/callyard/pkg/schema"
)

func TestResultsKeepTheirBytes(t *testing.T) {
	f := openFabric(t, nil)
	legacy := f.enter("/mcp", `{}`)
	const arguments = `{"z": 1.0,  "big":9007199254740993}`
	const want = `"content":[{"type":"hologram","data":9007199254740993}] , "got":{"z": 1.0,  "big":9007199254740993}}`
	if got := f.call("/mcp", "demo__echo", arguments).result(t); got != `{"resultType":"complete",`+want {
		t.Errorf("modern: %s", got)
	}
	if got := f.call("/mcp/demo", "echo", arguments).result(t); got != `{"resultType":"complete",`+want {
		t.Errorf("modern, one server: %s", got)
	}
	a := legacy.send(`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"demo__echo","arguments":` + arguments + `}}`)
	if got := a.result(t); got != "{"+want {
		t.Errorf("legacy: %s", got)
	}
	if last := f.Worker.Last(); string(last.Payload) != arguments || last.Server != "demo" || last.Tool != "echo" {
		t.Errorf("the worker got %s for %s/%s", last.Payload, last.Server, last.Tool)
	}
}

func TestALargeResultAndOneWithLineBreaksArriveWhole(t *testing.T) {
	f := openFabric(t, nil)
	if got := f.call("/mcp/demo", "large", `{}`).result(t); len(got) < 3<<20 {
		t.Errorf("%d bytes", len(got))
	}
	// Also in events, in which a line break would end a line.
	body := modernBody("tools/call", `"name":"lines","arguments":{}`, `{}`, `"progressToken":"p"`)
	a := f.send(f.request("POST", "/mcp/demo", body, modernHeaders("tools/call", "lines")...))
	if got := strings.Map(dropBreaks, a.result(t)); got != `{"resultType":"complete","content":[],"a":1}` {
		t.Errorf("%q", got)
	}
}

func dropBreaks(r rune) rune {
	if r == '\r' || r == '\n' {
		return -1
	}
	return r
}

func TestProgressArrivesInOrderBeforeTheResult(t *testing.T) {
	f := openFabric(t, nil)
	legacy := f.enter("/mcp/demo", `{}`)
	check := func(era string, a answer) {
		t.Helper()
		all := a.messages()
		if len(all) != 21 {
			t.Fatalf("%s: %d messages: %s", era, len(all), a.body)
		}
		for i, m := range all[:20] {
			want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"my token","progress":%d,"total":20.0,"odd":9007199254740993}}`, i+1)
			if string(m) != want {
				t.Errorf("%s: message %d is %s, want %s", era, i, m, want)
			}
		}
		if get(all[20], "result") == nil {
			t.Errorf("%s: last is %s", era, all[20])
		}
	}
	body := modernBody("tools/call", `"name":"steps"`, `{}`, `"progressToken":"my token"`)
	check("modern", f.send(f.request("POST", "/mcp/demo", body, modernHeaders("tools/call", "steps")...)))
	check("legacy", legacy.send(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"steps","_meta":{"progressToken":"my token"}}}`))
}

func TestErrorAfterProgressIsSentAsAnEvent(t *testing.T) {
	f := openFabric(t, nil)
	body := modernBody("tools/call", `"name":"late-error"`, `{}`, `"progressToken":1`)
	a := f.send(f.request("POST", "/mcp/demo", body, modernHeaders("tools/call", "late-error")...))
	if e := a.fault(t); len(a.messages()) != 2 || e.Code != -32602 || e.Message != "too late" || a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestWithoutEventStreamOnlyProgressIsDropped(t *testing.T) {
	f := openFabric(t, nil)
	body := modernBody("tools/call", `"name":"steps"`, `{}`, `"progressToken":1`)
	a := f.send(f.request("POST", "/mcp/demo", body, modernHeaders("tools/call", "steps", "Accept", "application/json")...))
	if a.header.Get("Content-Type") != "application/json" || a.result(t) != `{"resultType":"complete","content":[]}` {
		t.Errorf("%s %s", a.header, a.body)
	}
}

func TestDisconnectCancelsAModernCall(t *testing.T) {
	f := openFabric(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := f.request("POST", "/mcp/demo", modernBody("tools/call", `"name":"hang"`, `{}`, ""), modernHeaders("tools/call", "hang")...)
	done := make(chan error, 1)
	go func() {
		res, err := f.client.Do(r.WithContext(ctx))
		if err == nil {
			err = res.Body.Close()
		}
		done <- err
	}()
	<-f.Worker.Asked
	cancel()
	<-f.Worker.Canceled
	if err := <-done; err == nil {
		t.Error("the request was answered")
	}
}

func TestOnlyANotificationCancelsALegacyCall(t *testing.T) {
	f := openFabric(t, nil)
	s := f.enter("/mcp/demo", `{}`)
	done := make(chan answer, 1)
	r := s.request(`{"jsonrpc":"2.0","id":"c1","method":"tools/call","params":{"name":"hang"}}`)
	go func() { done <- f.send(r) }()
	<-f.Worker.Asked
	if a := s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c1"}}`); a.status != 202 {
		t.Errorf("cancelled: %d", a.status)
	}
	<-f.Worker.Canceled
	if a := <-done; get(a.last(), "result") != nil || get(a.last(), "error") != nil {
		t.Errorf("a cancelled request was answered: %s", a.body)
	}

	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan struct{})
	r = s.request(`{"jsonrpc":"2.0","id":"c2","method":"tools/call","params":{"name":"hang"}}`).WithContext(ctx)
	go func() {
		defer close(gone)
		if res, err := f.client.Do(r); err == nil {
			_ = res.Body.Close()
		}
	}()
	<-f.Worker.Asked
	leave()
	<-gone
	if a := s.send(`{"jsonrpc":"2.0","id":3,"method":"ping"}`); a.result(t) != `{}` {
		t.Errorf("ping: %s", a.body)
	}
	select {
	case <-f.Worker.Canceled:
		t.Error("the call was cancelled because its client hung up")
	default:
	}
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c2"}}`)
	<-f.Worker.Canceled
}

func TestServerErrorsAreForwardedUnchanged(t *testing.T) {
	f := openFabric(t, nil)
	e := f.call("/mcp", "demo__rpc", `{}`).fault(t)
	if e.Code != 4242 || e.Message != "no such city" || string(e.Data) != `{"big":9007199254740993,"a":1.0}` {
		t.Errorf("%+v %s", e, e.Data)
	}
}

func TestInvalidArgumentsReturnAReadableToolError(t *testing.T) {
	f := openFabric(t, nil)
	before := f.Worker.Count()
	got := f.call("/mcp/demo", "strict", `{"n":"secret","x":1}`).result(t)
	if !strings.Contains(got, `"isError":true`) || !strings.Contains(got, "/n") || strings.Contains(got, "secret") {
		t.Error(got)
	}
	if f.Worker.Count() != before {
		t.Error("it reached the worker")
	}
}

func TestUnknownToolsAndMethodsAreProtocolErrors(t *testing.T) {
	f := openFabric(t, nil)
	for _, c := range []struct {
		path, method, name, members string
		code                        int64
		status                      int
	}{
		{"/mcp", "tools/call", "demo__nothing", `"name":"demo__nothing"`, mcpwire.CodeInvalidParams, 400},
		{"/mcp/demo", "tools/call", "nothing", `"name":"nothing"`, mcpwire.CodeInvalidParams, 400},
		{"/mcp", "no/such", "", ``, mcpwire.CodeMethodNotFound, 404},
		{"/mcp", "ping", "", ``, mcpwire.CodeMethodNotFound, 404},
		{"/mcp", "resources/read", "no://thing", `"uri":"no://thing"`, mcpwire.CodeInvalidParams, 400},
		{"/mcp/demo", "resources/read", "=?base64?ZGVtAG86Ly9vbmU=?=", `"uri":"dem\u0000o://one"`, mcpwire.CodeInvalidParams, 400},
		{"/mcp/nothing", "tools/list", "", ``, mcpwire.CodeInvalidParams, 404},
		{"/mcp", "tools/list", "", `"cursor":"bm8"`, mcpwire.CodeInvalidParams, 400},
	} {
		a := f.ask(c.path, c.method, c.name, c.members)
		if e := a.fault(t); e.Code != c.code || a.status != c.status {
			t.Errorf("%s %s: %d %s", c.path, c.method, a.status, a.body)
		}
	}
	if n := f.Worker.Count(); n != 0 {
		t.Errorf("%d of these requests reached a worker", n)
	}
}

func TestToolNamesAreRewrittenOnlyAtTheCommonMount(t *testing.T) {
	f := openFabric(t, nil)
	all := f.ask("/mcp", "tools/list", "", "").result(t)
	if !strings.HasPrefix(all, `{"resultType":"complete","ttlMs":5000,"cacheScope":"public","tools":[`) {
		t.Errorf("%.200s", all)
	}
	for _, want := range []string{
		`{"name":"demo__echo",  "description":"Says it again", "inputSchema":{"type":"object"},"_meta":{"big":9007199254740993}}`,
		`{"name":"` + format.MCPName("two words", "echo") + `",  "description"`, `"` + format.MCPName("demo", "wärme 温度") + `"`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s", want)
		}
	}
	for _, name := range regexp.MustCompile(`"name":"([^"]*)","inputSchema"`).FindAllStringSubmatch(all, -1) {
		if !regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`).MatchString(name[1]) {
			t.Errorf("%q is no legal name", name[1])
		}
	}
	if one := f.ask("/mcp/demo", "tools/list", "", "").result(t); !strings.Contains(one, string(definitions.Tools[0])) || !strings.Contains(one, `"name":"wärme 温度"`) {
		t.Error(one)
	}
	if got := f.call("/mcp", format.MCPName("demo", "wärme 温度"), `{}`).result(t); !strings.Contains(got, `"got":{}`) {
		t.Error(got)
	}
	if f.Worker.Last().Tool != "wärme 温度" {
		t.Error(f.Worker.Last().Tool)
	}
}

func TestToolsWithInvalidSchemasAreOmittedAndLogged(t *testing.T) {
	f := openFabric(t, nil)
	all := f.ask("/mcp/demo", "tools/list", "", "").result(t)
	for _, name := range []string{"no-type", "no-object", "true-schema"} {
		if strings.Contains(all, name) {
			t.Errorf("%s is listed", name)
		}
		if !strings.Contains(f.Logged.String(), "tool="+name) {
			t.Errorf("nobody was told of %s", name)
		}
	}
	if !strings.Contains(all, `"header"`) {
		t.Error("the others are gone")
	}
}

func TestToolPagesContinueAtAnyFrontDoor(t *testing.T) {
	f := openFabric(t, nil)
	const each, servers = 500, 10
	for s := range servers {
		var defs schema.Definitions
		for i := range each {
			defs.Tools = append(defs.Tools, raw(fmt.Sprintf(`{"name":"tool_%03d","inputSchema":{"type":"object"}}`, i)))
		}
		f.define(schema.ServerID(fmt.Sprintf("many%d", s)), defs)
	}
	f.WaitFor("all tools", func() bool { return len(f.endpoint.lists.view(place{}).toolOf) >= each*servers })
	seen := make(map[string]bool)
	pages := 0
	for cursor := ""; ; pages++ {
		members := ""
		if cursor != "" {
			members = `"cursor":"` + cursor + `"`
		}
		page := f.ask("/mcp", "tools/list", "", members).result(t)
		for _, m := range regexp.MustCompile(`"name":"(many\d__tool_\d+)"`).FindAllStringSubmatch(page, -1) {
			if seen[m[1]] {
				t.Fatalf("%s came twice", m[1])
			}
			seen[m[1]] = true
		}
		if cursor = getString([]byte(page), "nextCursor"); cursor == "" {
			break
		}
		if pages > 100 {
			t.Fatal("the pages have no end")
		}
	}
	if len(seen) != each*servers || pages < 4 {
		t.Errorf("%d tools on %d pages", len(seen), pages)
	}
	if got := f.call("/mcp", "many7__tool_499", `{}`).result(t); !strings.Contains(got, "content") || f.Worker.Last().Server != "many7" {
		t.Error(got)
	}
}

func TestResourcesPromptsAndCompletionReachTheServerThatHasThem(t *testing.T) {
	f := openFabric(t, nil)
	for _, c := range []struct {
		path, method, name, members string
		server                      schema.ServerID
		want                        string
	}{
		{"/mcp/two%20words", "resources/read", "demo://one", `"uri":"demo://one"`, "two words", `{"uri":"demo://one"}`},
		{"/mcp", "resources/read", "callyard:demo:demo://any/7", `"uri":"callyard:demo:demo://any/7"`, "demo", `{"uri":"demo://any/7"}`},
		{"/mcp", "prompts/get", "demo__greet", `"name":"demo__greet","arguments":{"a":"b"}`, "demo", `{"name":"greet","arguments":{"a":"b"}}`},
		{"/mcp/demo", "prompts/get", "greet", `"name":"greet"`, "demo", `{"name":"greet"}`},
		{"/mcp", "completion/complete", "", `"ref":{"type":"ref/prompt","name":"demo__greet"},"argument":{"name":"n","value":"v"}`, "demo", `{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"n","value":"v"}}`},
		{"/mcp", "completion/complete", "", `"ref":{"type":"ref/resource","uri":"callyard:demo:demo://any/{id}"},"argument":{"name":"id","value":"v"}`, "demo", `{"ref":{"type":"ref/resource","uri":"demo://any/{id}"},"argument":{"name":"id","value":"v"}}`},
	} {
		got := f.ask(c.path, c.method, c.name, c.members).result(t)
		last := f.Worker.Last()
		if last.Method != c.method || last.Server != c.server || string(last.Payload) != c.want {
			t.Errorf("%s %s: the worker got %s %s %s", c.path, c.method, last.Server, last.Method, last.Payload)
		}
		if c.method == "resources/read" && !strings.Contains(got, `"ttlMs":0,"cacheScope":"private"`) {
			t.Errorf("resources/read says nothing of caching: %s", got)
		}
	}
}

func TestServerThatNeedsApprovalRefusesOtherMethods(t *testing.T) {
	f := openFabric(t, nil)
	for method, c := range map[string][2]string{
		"resources/read":      {"demo://one", `"uri":"demo://one"`},
		"prompts/get":         {"greet", `"name":"greet"`},
		"completion/complete": {"", `"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"n","value":"v"}`},
	} {
		if got := string(f.ask("/mcp/risky", method, c[0], c[1]).body); !strings.Contains(got, `"kind":"forbidden"`) || !strings.Contains(got, "match.method "+method) {
			t.Errorf("%s: %s", method, got)
		}
	}
}

func TestServerInfoDependsOnTheMount(t *testing.T) {
	f := openFabric(t, nil)
	const theirs = `{"resultType":"complete","content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"theirs","version":"9"},"own":1.0}}`
	if got := f.call("/mcp/demo", "stamped", `{}`).result(t); got != theirs {
		t.Error(got)
	}
	ours := strings.Replace(theirs, `{"name":"theirs","version":"9"}`, `{"name":"callyard","version":"test"}`, 1)
	if got := f.call("/mcp", "demo__stamped", `{}`).result(t); got != ours {
		t.Error(got)
	}
}

func TestModernMembersAreRemovedForLegacyClients(t *testing.T) {
	for _, c := range []struct{ from, want string }{
		{`{"resultType":"complete", "a":1.0 ,"ttlMs":0,"content":[ ],"cacheScope":"public" }`, `{"a":1.0,"content":[ ]}`},
		{`{"content":[],"resultType":"complete"}`, `{"content":[]}`},
		{`{"resultType":"complete"}`, `{}`},
		{`{"ttlMs":5,"content":["resultType"]}`, `{"ttlMs":5,"content":["resultType"]}`},
		{`{"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{},"own":1.0}}`, `{"content":[],"_meta":{"own":1.0}}`},
	} {
		if got := string((&exchange{}).fitted([]byte(c.from))); got != c.want {
			t.Errorf("%s became %s, want %s", c.from, got, c.want)
		}
	}
}

func TestMCPEndpointIsAlsoServedUnderTheRESTPath(t *testing.T) {
	f := openFabric(t, nil)
	const at = "/servers/demo/mcp"
	if got := f.call(at, "echo", `{}`).result(t); !strings.Contains(got, "content") {
		t.Error(got)
	}
	client := f.enter(at, `{}`)
	if got := client.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`).result(t); got != "{}" {
		t.Error(got)
	}
	metadata := f.send(f.request("GET", wellKnown+at, ""))
	if metadata.status != http.StatusOK || !strings.Contains(string(metadata.body), at+`"`) {
		t.Errorf("%d %s", metadata.status, metadata.body)
	}
	for p, want := range map[string]bool{at: true, "/servers/mcp": false, "/servers//mcp": false, "/servers/a/b/mcp": false, "/servers/demo/tools/mcp": false, "/servers/demo/mcp/x": false} {
		if Serves(p) != want {
			t.Errorf("%s: served %v", p, !want)
		}
	}
}

func TestMountHasItsServersInfoAndInstructions(t *testing.T) {
	f := openFabric(t, nil)
	defs := schema.Definitions{
		Tools: []json.RawMessage{json.RawMessage(`{"name":"echo","inputSchema":{"type":"object"}}`)},
		About: json.RawMessage(`{"serverInfo":{"name":"theirs","title":"Their Server","version":"9.1","websiteUrl":"https://example.org"},"instructions":"Echo <first>.","extensions":{"io.modelcontextprotocol/ui":{},"io.modelcontextprotocol/tasks":{"theirs":true}}}`),
	}
	f.define("demo", defs)
	f.WaitFor("what the server says of itself", func() bool {
		got, err := f.endpoint.o.Catalog.Definitions("demo")
		return err == nil && got.About != nil
	})
	const info = `{"name":"callyard/demo","version":"9.1","title":"Their Server","websiteUrl":"https://example.org"}`
	discovered := []byte(f.ask("/mcp/demo", "server/discover", "", "").result(t))
	opened := []byte(f.send(f.request("POST", "/mcp/demo", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)).result(t))
	if got := string(get(get(discovered, "_meta"), mcpwire.MetaServerInfo)); got != info {
		t.Errorf("modern: %s", got)
	}
	if got := string(get(opened, "serverInfo")); got != info {
		t.Errorf("legacy: %s", got)
	}
	for era, got := range map[string][]byte{"modern": discovered, "legacy": opened} {
		if text := getString(got, "instructions"); text != "Echo <first>." {
			t.Errorf("%s: instructions %q", era, text)
		}
		extensions := get(get(got, "capabilities"), "extensions")
		if string(get(extensions, "io.modelcontextprotocol/ui")) != "{}" || strings.Contains(string(extensions), "theirs") {
			t.Errorf("%s: extensions %s", era, extensions)
		}
	}
	if all := f.ask("/mcp", "server/discover", "", "").result(t); strings.Contains(all, "Echo <first>") {
		t.Errorf("/mcp has the instructions of one server: %s", all)
	}
}

func TestHeadersThatContradictTheBodyAreRefused(t *testing.T) {
	f := openFabric(t, nil)
	good := modernBody("tools/call", `"name":"echo"`, `{}`, "")
	for name, c := range map[string]struct {
		body   string
		header []string
		code   int64
	}{
		"no version header":     {good, modernHeaders("tools/call", "echo", "Mcp-Protocol-Version", ""), mcpwire.CodeHeaderMismatch},
		"other version":         {good, modernHeaders("tools/call", "echo", "Mcp-Protocol-Version", "2025-11-25"), mcpwire.CodeHeaderMismatch},
		"unknown version":       {strings.ReplaceAll(good, mcpwire.Modern, "2099-01-01"), modernHeaders("tools/call", "echo", "Mcp-Protocol-Version", "2099-01-01"), mcpwire.CodeUnsupportedVersion},
		"no method header":      {good, modernHeaders("tools/call", "echo", "Mcp-Method", ""), mcpwire.CodeHeaderMismatch},
		"other method":          {good, modernHeaders("tools/list", "echo"), mcpwire.CodeHeaderMismatch},
		"no name":               {good, modernHeaders("tools/call", ""), mcpwire.CodeHeaderMismatch},
		"other name":            {good, modernHeaders("tools/call", "fail"), mcpwire.CodeHeaderMismatch},
		"bad base64":            {good, modernHeaders("tools/call", "=?base64?*?="), mcpwire.CodeHeaderMismatch},
		"no meta":               {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, modernHeaders("tools/list", ""), mcpwire.CodeInvalidParams},
		"no capabilities":       {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"` + mcpwire.MetaProtocolVersion + `":"` + mcpwire.Modern + `"}}}`, modernHeaders("tools/list", ""), mcpwire.CodeInvalidParams},
		"argument not repeated": {modernBody("tools/call", `"name":"header","arguments":{"region":"eu"}`, `{}`, ""), modernHeaders("tools/call", "header"), mcpwire.CodeHeaderMismatch},
		"argument contradicted": {modernBody("tools/call", `"name":"header","arguments":{"region":"eu"}`, `{}`, ""), modernHeaders("tools/call", "header", "Mcp-Param-Region", "us"), mcpwire.CodeHeaderMismatch},
	} {
		a := f.send(f.request("POST", "/mcp/demo", c.body, c.header...))
		if e := a.fault(t); e.Code != c.code || a.status != 400 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	// Names that a header cannot contain are base64-encoded, here "wärme 温度".
	body := modernBody("tools/call", `"name":"wärme 温度"`, `{}`, "")
	a := f.send(f.request("POST", "/mcp/demo", body, modernHeaders("tools/call", "=?base64?d8Okcm1lIOa4qeW6pg==?=")...))
	a.result(t)
	body = modernBody("tools/call", `"name":"header","arguments":{"region":"eu"}`, `{}`, "")
	f.send(f.request("POST", "/mcp/demo", body, modernHeaders("tools/call", "header", "Mcp-Param-Region", "eu")...)).result(t)
}

func TestMalformedMessagesAreRefused(t *testing.T) {
	f := openFabric(t, nil)
	for body, code := range map[string]int64{
		`{`:        mcpwire.CodeParse,
		`[]`:       mcpwire.CodeInvalidRequest,
		`{"id":1}`: mcpwire.CodeInvalidRequest,
		`{"jsonrpc":"2.0","id":1.5,"method":"a"}`:                                                              mcpwire.CodeInvalidRequest,
		`{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}`:                                                   mcpwire.CodeParse,
		`{"jsonrpc":"2.0","id":1,"method":"a","params":[]}`:                                                    mcpwire.CodeInvalidParams,
		`{"jsonrpc":"2.0","id":1}`:                                                                             mcpwire.CodeInvalidRequest,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":"` + strings.Repeat("x", 400<<10) + `"}}`: mcpwire.CodeInvalidRequest,
	} {
		a := f.send(f.request("POST", "/mcp", body))
		if e := a.fault(t); e.Code != code || a.status < 400 {
			t.Errorf("%.60s: %d %s", body, a.status, a.body)
		}
	}
	if a := f.send(f.request("POST", "/mcp", `{}`, "Content-Type", "text/plain")); a.status != 415 {
		t.Errorf("%d", a.status)
	}
	for _, method := range []string{"GET", "DELETE", "PUT"} {
		if a := f.send(f.request(method, "/mcp", "")); a.status != 405 || a.header.Get("Allow") == "" {
			t.Errorf("%s: %d", method, a.status)
		}
	}
}

func TestWebPagesAndForeignHostNamesAreRefused(t *testing.T) {
	f := openFabric(t, nil)
	for _, header := range [][]string{{"Origin", "https://evil.example"}, {"Host", "evil.example"}, {"Origin", "null"}, {"Origin", "http://localhost:3000"}} {
		r := f.request("POST", "/mcp", modernBody("tools/list", "", `{}`, ""), modernHeaders("tools/list", "", header...)...)
		if a := f.send(r); a.status != http.StatusForbidden {
			t.Errorf("%v: %d %s", header, a.status, a.body)
		}
	}
	r := f.request("POST", "/mcp", modernBody("tools/list", "", `{}`, ""), modernHeaders("tools/list", "", "Origin", f.url)...)
	if a := f.send(r); a.status != 200 {
		t.Errorf("a page of our own: %d %s", a.status, a.body)
	}
}

func TestWithKeysAnonymousRequestsGetAChallenge(t *testing.T) {
	key, hash := authn.Generate()
	other, otherHash := authn.Generate()
	f := openFabric(t, func(o *Options) {
		keys, err := authn.NewKeys([]authn.Key{{Name: "ann", Hash: hash}, {Name: "bob", Hash: otherHash}})
		if err != nil {
			t.Fatal(err)
		}
		o.Keys = callers.New(callers.Options{Keys: keys})
	})
	a := f.ask("/mcp/demo", "tools/list", "", "")
	if want := `resource_metadata="` + f.url + `/.well-known/oauth-protected-resource/mcp/demo"`; a.status != 401 || !strings.Contains(a.header.Get("Www-Authenticate"), want) {
		t.Errorf("%d %v", a.status, a.header)
	}
	a = f.send(f.request("GET", "/.well-known/oauth-protected-resource/mcp/demo", ""))
	if want := `{"resource":"` + f.url + `/mcp/demo","resource_name":"Callyard","bearer_methods_supported":["header"]}`; string(a.body) != want {
		t.Errorf("%s", a.body)
	}
	a = f.send(f.request("POST", "/mcp", modernBody("tools/list", "", `{}`, ""), modernHeaders("tools/list", "", "Authorization", "Bearer "+key)...))
	if !strings.Contains(a.result(t), `"cacheScope":"private"`) {
		t.Error("the list is for all")
	}
	init := f.send(f.request("POST", "/mcp", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`, "Authorization", "Bearer "+key))
	id := init.header.Get(mcpwire.HeaderSessionID)
	a = f.send(f.request("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, mcpwire.HeaderSessionID, id, "Authorization", "Bearer "+other))
	if a.status != 404 {
		t.Errorf("somebody else's session: %d %s", a.status, a.body)
	}
}

func TestUnknownSessionIsNotFound(t *testing.T) {
	f := openFabric(t, nil)
	s := f.enter("/mcp", `{}`)
	if a := f.send(f.request("DELETE", "/mcp", "", mcpwire.HeaderSessionID, s.id)); a.status != 204 {
		t.Errorf("DELETE: %d", a.status)
	}
	if a := s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); a.status != 404 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := f.send(f.request("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)); a.status != 400 {
		t.Errorf("without a session: %d %s", a.status, a.body)
	}
	other := f.enter("/mcp", `{}`)
	other.path = "/mcp/demo"
	if a := other.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); a.status != 404 {
		t.Errorf("at another mount: %d %s", a.status, a.body)
	}
}

func TestAnAbandonedSessionEnds(t *testing.T) {
	f := openFabric(t, nil)
	f.enter("/mcp", `{}`)
	f.endpoint.sessions.sweep(time.Now().Add(time.Hour), 30*time.Minute)
	if n := len(f.endpoint.sessions.all()); n != 0 {
		t.Errorf("%d sessions", n)
	}
}

// events returns a function that reads the next message of a stream.
func events(t *testing.T, res *http.Response) (next func() string) {
	t.Helper()
	in := bufio.NewReader(res.Body)
	return func() string {
		t.Helper()
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				t.Fatalf("the stream ended: %v", err)
			}
			if data, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "data: "); ok {
				return data
			}
		}
	}
}

func TestNumberOfStreamsIsBoundedInBothEras(t *testing.T) {
	f := openFabric(t, func(o *Options) { o.Waits = waits.New(3, 1) })
	listen := func() *http.Request {
		return f.request("POST", "/mcp", modernBody("subscriptions/listen", `"notifications":{"toolsListChanged":true}`, `{}`, ""), modernHeaders("subscriptions/listen", "")...)
	}
	s := f.enter("/mcp/demo", `{}`)
	first, err := f.client.Do(listen())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Body.Close()
	events(t, first)()
	for _, r := range []*http.Request{listen(), f.request("GET", "/mcp/demo", "", mcpwire.HeaderSessionID, s.id)} {
		res, err := f.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if !strings.Contains(string(body), "1 of your requests wait at this front door already") || r.Method == http.MethodGet && res.StatusCode != http.StatusTooManyRequests {
			t.Errorf("%s: %s %s", r.Method, res.Status, body)
		}
	}
}

func TestFullStreamLimitReturns429Or503(t *testing.T) {
	for limit, status := range map[*waits.Limit]int{waits.New(9, 0): http.StatusTooManyRequests, waits.New(0, 9): http.StatusServiceUnavailable} {
		f := openFabric(t, func(o *Options) { o.Waits = limit })
		s := f.enter("/mcp/demo", `{}`)
		res, err := f.client.Do(f.request("GET", "/mcp/demo", "", mcpwire.HeaderSessionID, s.id))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != status || res.Header.Get("Retry-After") != "1" || !res.Close {
			t.Errorf("%s %v, want %d", res.Status, res.Header, status)
		}
	}
}

func TestStreamOfAClientThatReadsNoEventsIsNotAcceptable(t *testing.T) {
	f := openFabric(t, nil)
	s := f.enter("/mcp/demo", `{}`)
	r := f.request("GET", "/mcp/demo", "", mcpwire.HeaderSessionID, s.id)
	r.Header.Set("Accept", "application/json")
	if a := f.send(r); a.status != http.StatusNotAcceptable || !strings.Contains(string(a.body), "send Accept: text/event-stream") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestListChangesAreNotifiedInBothEras(t *testing.T) {
	f := openFabric(t, nil)
	open := func(r *http.Request) func() string {
		res, err := f.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		if res.StatusCode != 200 || res.Header.Get("X-Accel-Buffering") != "no" {
			t.Fatalf("%s %v", res.Status, res.Header)
		}
		return events(t, res)
	}
	modern := open(f.request("POST", "/mcp", modernBody("subscriptions/listen", `"notifications":{"toolsListChanged":true}`, `{}`, ""), modernHeaders("subscriptions/listen", "")...))
	if got, want := modern(), `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"`+mcpwire.MetaSubscriptionID+`":1}}}`; got != want {
		t.Errorf("%s", got)
	}
	s := f.enter("/mcp/demo", `{}`)
	legacy := open(f.request("GET", "/mcp/demo", "", mcpwire.HeaderSessionID, s.id))
	other := f.enter("/mcp/risky", `{}`)
	quiet := open(f.request("GET", "/mcp/risky", "", mcpwire.HeaderSessionID, other.id))

	defs := definitions
	defs.Tools = append(defs.Tools[:len(defs.Tools):len(defs.Tools)], raw(`{"name":"new","inputSchema":{"type":"object"}}`))
	f.define("demo", defs)
	if got, want := modern(), `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"`+mcpwire.MetaSubscriptionID+`":1}}}`; got != want {
		t.Errorf("%s", got)
	}
	if got, want := legacy(), `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}`; got != want {
		t.Errorf("%s", got)
	}
	if got := f.ask("/mcp", "tools/list", "", "").result(t); !strings.Contains(got, "demo__new") {
		t.Error("the new tool is not listed")
	}
	// The next notification at the other mount is about its own change.
	defs = definitions
	defs.Prompts = []json.RawMessage{raw(`{"name":"other"}`)}
	f.define("risky", defs)
	if got := quiet(); !strings.Contains(got, "notifications/prompts/list_changed") {
		t.Errorf("%s", got)
	}
	// A front door that is about to stop ends the subscription with a result.
	f.endpoint.drain()
	for got := modern(); get([]byte(got), "result") == nil; got = modern() {
	}
}

func TestDisabledToolIsHiddenAndCallsGetTheReason(t *testing.T) {
	f := openFabric(t, nil)
	if _, err := f.endpoint.o.Catalog.Switch(t.Context(), "demo", "fail", false, "it only fails", "ops"); err != nil {
		t.Fatal(err)
	}
	f.WaitFor("the switch", func() bool { return !strings.Contains(f.ask("/mcp", "tools/list", "", "").result(t), "demo__fail") })
	got := f.call("/mcp", "demo__fail", `{}`).result(t)
	if !strings.Contains(got, "it only fails") || !strings.Contains(got, `"isError":true`) {
		t.Error(got)
	}
}

func TestServerQuestionsRoundTripWithModernClients(t *testing.T) {
	f := openFabric(t, nil)
	const able = `{"elicitation":{"form":{}},"extensions":{"x":{}}}`
	got := f.callAs(able, "/mcp/demo", "ask", `{}`, "").result(t)
	if !strings.HasPrefix(got, `{"resultType":"input_required","inputRequests":{"q1"`) || getString([]byte(got), "requestState") != "s-1" {
		t.Error(got)
	}
	if want := `{"_meta":{"` + mcpwire.MetaClientCapabilities + `":{"elicitation":{"form":{}}}}}`; string(f.Worker.Last().Extra) != want {
		t.Errorf("the server is told %s", f.Worker.Last().Extra)
	}
	f.callAs(able, "/mcp/demo", "ask", `{}`, `,"inputResponses":{"q1":{"action":"accept","content":{"big":9007199254740993}}},"requestState":"s-1"`).result(t)
	want := `{"_meta":{"` + mcpwire.MetaClientCapabilities + `":{"elicitation":{"form":{}}}},"inputResponses":{"q1":{"action":"accept","content":{"big":9007199254740993}}},"requestState":"s-1"}`
	if got := string(f.Worker.Last().Extra); got != want {
		t.Errorf("the answers became %s", got)
	}
	f.call("/mcp/demo", "echo", `{}`)
	if got := f.Worker.Last().Extra; len(got) != 0 {
		t.Errorf("a client that cannot be asked sends %s", got)
	}
}

func TestQuestionsOfAServerReachLegacyClientsAsRequests(t *testing.T) {
	f := openFabric(t, nil)
	s := f.enter("/mcp/demo", `{"elicitation":{}}`)
	res, err := f.client.Do(s.request(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"ask"}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	next := events(t, res)
	question := next()
	// SDKs refuse to forward this schema, but it is forwarded unchanged.
	if getString([]byte(question), "method") != "elicitation/create" || !strings.Contains(question, `"items":{"type":"string"}`) {
		t.Fatal(question)
	}
	if a := s.send(`{"jsonrpc":"2.0","id":` + string(get([]byte(question), "id")) + `,"result":{"action":"accept","content":{"who":"me"}}}`); a.status != 202 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if got := next(); !strings.Contains(got, `"inputResponses":{"q1":{"action":"accept","content":{"who":"me"}}}`) || !strings.Contains(got, `"requestState":"s-1"`) {
		t.Error(got)
	}
}

func TestConversationMatchesTheGoldenFile(t *testing.T) {
	f := openFabric(t, nil)
	s := f.enter("/mcp/demo", `{}`)
	var b strings.Builder
	note := func(title string, a answer) {
		fmt.Fprintf(&b, "# %s\n%d %s\n", title, a.status, a.header.Get("Content-Type"))
		for _, m := range a.messages() {
			fmt.Fprintf(&b, "%s\n", m)
		}
	}
	note("server/discover", f.ask("/mcp", "server/discover", "", ""))
	note("initialize", f.send(f.request("POST", "/mcp/demo", `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2024-01-01","capabilities":{}}}`)))
	note("prompts/list", f.ask("/mcp", "prompts/list", "", ""))
	note("prompts/list of one server, legacy", s.send(`{"jsonrpc":"2.0","id":2,"method":"prompts/list"}`))
	note("resources/list", f.ask("/mcp", "resources/list", "", ""))
	note("resources/templates/list", f.ask("/mcp/demo", "resources/templates/list", "", ""))
	note("tools/call", f.call("/mcp", "demo__echo", `{"a":1.0}`))
	note("tools/call, arguments that do not fit", f.call("/mcp", "demo__strict", `{}`))
	note("tools/call, unknown", f.call("/mcp", "demo__none", `{}`))
	note("an unknown revision", f.send(f.request("POST", "/mcp", strings.ReplaceAll(modernBody("tools/list", "", `{}`, ""), mcpwire.Modern, "2031-01-01"), "Mcp-Protocol-Version", "2031-01-01", "Mcp-Method", "tools/list")))
	text := regexp.MustCompile(`call_[0-9a-z]{26}`).ReplaceAllString(b.String(), "call_ID")
	file := filepath.Join("testdata", "conversation.golden")
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("-update writes it (-want +got)\n%s", diff)
	}
}

func TestACancellationMayOvertakeItsRequest(t *testing.T) {
	f := openFabric(t, nil)
	s := f.enter("/mcp/demo", `{}`)
	if a := s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c1"}}`); a.status != 202 {
		t.Errorf("cancelled: %d", a.status)
	}
	if a := s.send(`{"jsonrpc":"2.0","id":"c1","method":"tools/call","params":{"name":"hang"}}`); get(a.last(), "result") != nil || get(a.last(), "error") != nil {
		t.Errorf("a cancelled request was answered: %s", a.body)
	}
	// The early cancellation applied to one request only.
	if a := s.send(`{"jsonrpc":"2.0","id":"c1","method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}`); get(a.last(), "result") == nil {
		t.Errorf("the next request with the id: %s", a.body)
	}
}

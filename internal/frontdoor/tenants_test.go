package frontdoor_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/tenants"
	"github.com/callyard/callyard/internal/toolset"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// pair is an ID of another tenant, and one in the same format that never existed.
type pair struct{ foreign, unknown string }

// tenantFabric is a front door for two tenants. Red owns the server vault, the sets reds and redown, a call,
// a batch and a key; blue sees none of them. reds is a set of the installation with a tool of vault,
// redown one that red created.
type tenantFabric struct {
	*door
	red   string            // a key of red
	blues map[string]string // keys of blue, by permission
	// ids are the IDs of red's resources, by the prefix of their paths.
	ids map[string]pair
	// words are the same IDs, by their placeholders in queries and bodies.
	words map[string]pair
}

const never = "06b2t8m3c0w3v2q5n7k9a1d4fz"

func openTenantFabric(t testing.TB) *tenantFabric {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv, "vault").let)
	redKey, redHash := authn.Generate()
	blueKey, blueHash := authn.Generate()
	o := frontdoor.Options{Tenants: tenants.New(settings.Tenants{"red": {Servers: []string{"s", "vault"}}, "blue": {Servers: []string{"s"}}})}
	o.Config.Keys = []authn.Key{{Name: "ann", Hash: redHash, Tenant: "red"}, {Name: "bob", Hash: blueHash, Tenant: "blue"}}
	o.Config.Evaluations = evaluations(t, "scored")
	o.Config.Sets = []toolset.Set{{Name: "reds", Include: []toolset.Selector{{Server: "vault", Tool: "read"}}}, {Name: "all", Include: []toolset.Selector{{Server: "s", Tool: "read"}}}}
	w := &tenantFabric{door: openDoor(t, srv, o), red: redKey}
	changes, done := w.in.Catalog().Changes()
	defer done()
	for {
		if _, err := w.in.Catalog().Tool("vault", "read"); err == nil {
			break
		}
		<-changes
	}
	reader := w.newKey(blueKey, `{"name":"blue/reader","scopes":["tools:read","calls:read"]}`)
	wide := w.newKey(blueKey, `{"name":"blue/wide","scopes":["tools:read","tools:call:s","calls:read","admin"]}`)
	w.blues = map[string]string{"all": blueKey, "reader": reader.Secret, "wide": wide.Secret}
	w.ids = map[string]pair{
		"/servers/": {"vault", "crypt"}, "/sets/": {"reds", "grey"},
		"/calls/": w.made("/servers/vault/tools/write", `{}`, "/calls/"), "/batches/": w.made("/batches", `{"calls":[{"server":"vault","tool":"read"}]}`, "/batches/"),
		"/keys/": w.made("/keys", `{"name":"red/nightly","scopes":["tools:read"]}`, "/keys/"), "/confirmations/": {"conf_" + never, "conf_" + never[1:] + "0"},
		"/tenants/":     {"red", "tan"},
		"/workers/":     {string(w.in.Catalog().Workers()[0].ID), "worker_" + never},
		"/evaluations/": {"scored", "none"}, "/webhooks/deliveries/": {"known", "none"}, // see webhooks_deliveries_test.go
	}
	if status, _, answer := w.with(redKey, "PUT", "/sets/redown", `{"include":[{"server":"s"}]}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	w.words = map[string]pair{"SERVER": w.ids["/servers/"], "SET": w.ids["/sets/"], "TENANT": w.ids["/tenants/"]}
	return w
}

// evaluations returns a folder with an evaluation run.
func evaluations(t testing.TB, name string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"report.json": `{"data":"vault","samples":1,"levels":[{"level":"published"}],"scoring":{"reward":{"name":"r"}}}`, "scores.jsonl": ""} {
		if err := os.WriteFile(filepath.Join(dir, name, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// made creates a resource of red and returns its ID.
func (w *tenantFabric) made(path, body, below string) pair {
	w.t.Helper()
	status, h, answer := w.with(w.red, "POST", path, body, "Prefer", "respond-async")
	id := strings.TrimPrefix(h.Get("Location"), below)
	if status/100 != 2 || id == "" || id == h.Get("Location") {
		w.t.Fatalf("%s: %d %v %s", path, status, h, answer)
	}
	other := id[:len(id)-1] + "0"
	if other == id {
		other = id[:len(id)-1] + "1"
	}
	if below == "/calls/" {
		other = strings.Replace(id, id[5:31], never, 1)
	}
	return pair{id, other}
}

// apiOperation is an operation of the document.
type apiOperation struct{ id, method, path string }

func (w *tenantFabric) operations() (all []apiOperation) {
	w.t.Helper()
	var doc struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	_, _, text := w.do("GET", "/openapi.json", "")
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		w.t.Fatal(err)
	}
	for path, of := range doc.Paths {
		for method, op := range of {
			all = append(all, apiOperation{op.OperationID, strings.ToUpper(method), path})
		}
	}
	// Lists go first, so that they do not contain resources created by this test.
	slices.SortFunc(all, func(a, b apiOperation) int {
		return cmp.Or(strings.Compare(a.method, b.method), strings.Compare(fmt.Sprint(naming[a.id]), fmt.Sprint(naming[b.id])), strings.Compare(a.id, b.id))
	})
	return all
}

// bodies are the bodies of operations with an ID in the path for which {} is invalid.
var bodies = map[string]string{"settle-call": `{"as":"done","reason":"it is"}`, "add-batch-calls": `{"server":"s","tool":"read"}` + "\n", "confirm-call": `{"confirm":true}`, "switch-tool": `{"enabled":false}`}

// naming are the requests of operations without an ID in the path that name a resource: the rest of
// the URL, and the body.
var naming = map[string][][2]string{
	"list-tools":        {{"?server=SERVER", ""}, {"?set=SET", ""}, {"?format=openai&set=SET", ""}, {"?format=anthropic&query=read", ""}, {"", ""}},
	"search-tools":      {{"?q=read&server=SERVER", ""}, {"?q=read&set=SET", ""}, {"?q=read", ""}},
	"preflight":         {{"?tool=SERVER/read", ""}},
	"create-call":       {{"", `{"server":"SERVER","tool":"read"}`}},
	"create-batch":      {{"", `{"calls":[{"server":"SERVER","tool":"read"}]}`}},
	"create-tool-calls": {{"", `{"tool_calls":[{"id":"1","type":"function","function":{"name":"SERVER__read","arguments":"{}"}}]}`}, {"?set=SET", `{"tool_calls":[{"id":"1","type":"function","function":{"name":"read","arguments":"{}"}}]}`}},
	"confirm-calls":     {{"", `{"confirmations":[{"id":"conf_` + never + `","confirm":true}]}`}},
	"switch-tools":      {{"", `{"server":"SERVER","enabled":false}`}, {"", `{"set":"SET","enabled":false}`}},
	"add-server":        {{"", `{"id":"SERVER","command":"true"}`}},
	"create-key":        {{"", `{"name":"blue/SERVER","scopes":["tools:call:SERVER","tools:call:@SET"],"tools":["SERVER/read"]}`}},
	"convert-tools":     {{"", `{}`}},
	"put-state":         {{"?dry_run=true", `{"format":"callyard-state/1","switches":[{"server":"SERVER","tool":"read"}]}`}},
	"test-policy":       {{"", `{"server":"SERVER","tool":"read","arguments":{}}`}, {"", `{"server":"SERVER","tool":"read","principal":{"name":"ada","tenant":"TENANT"}}`}},
	"dry-run-policy":    {{"", `{"policy":"rules: [{name: one, match: {server: SERVER}, level: 1}]"}`}},
	"get-usage":         {{"?by=server", ""}, {"?by=tool&tenant=TENANT", ""}, {"", ""}}, "get-state": {{"", ""}}, "list-audit": {{"?tenant=TENANT", ""}, {"", ""}}, "list-tenants": {{"", ""}}, "verify-audit": {{"", ""}}, "list-evaluations": {{"", ""}},
	"list-calls": {{"?server=SERVER", ""}, {"?tenant=TENANT", ""}, {"?principal=*&tenant=TENANT", ""}, {"", ""}}, "list-batches": {{"", ""}}, "list-webhook-deliveries": {{"", ""}, {"?state=waiting", ""}}, "list-keys": {{"", ""}}, "list-servers": {{"", ""}}, "list-sets": {{"", ""}}, "list-switches": {{"", ""}}, "list-workers": {{"", ""}},
	"get-health": {{"", ""}}, "get-livez": {{"", ""}}, "get-readyz": {{"", ""}}, "get-version": {{"", ""}}, "get-metrics": {{"", ""}}, "list-front-doors": {{"", ""}}, "get-configuration": {{"", ""}},
	"get-events": {}, // it does not end; events covers it
}

// volatile matches values that differ between answers.
var volatile = regexp.MustCompile(`"(call_|batch_)[0-9a-z]+"|"(uptime|next_cursor|id|secret|last_used|created_at|started|took_ms|at)":("[^"]*"|[0-9.]+)|[a-z]+_[0-9a-z]{26,}|\\"[0-9]+\\"|go_[^\n]*\n|[0-9]{4}-[0-9]{2}-[0-9]{2}T[^"]*`)

// alike sends the same request for a foreign and for an unknown ID. Other requests change numbers
// in lists in the meantime, so only a lasting difference is an error.
func (w *tenantFabric) alike(what, key, method, path, body string, header []string, words map[string]pair) {
	w.t.Helper()
	status, got := w.answers(what, key, method, path, body, header, words)
	for again := 0; again < 5 && method == "GET" && (status[0] != status[1] || got[0] != got[1]); again++ {
		status, got = w.answers(what, key, method, path, body, header, words)
	}
	if status[0] != status[1] || got[0] != got[1] {
		w.t.Errorf("%s: what is foreign is answered with\n%d %s\nwhat is unknown with\n%d %s", what, status[0], got[0], status[1], got[1])
	}
	if strings.Contains(path, "ID") && status[0] < 400 {
		w.t.Errorf("%s: %d %s", what, status[0], got[0])
	}
}

// answers returns the answers to both requests of [tenantFabric.alike].
func (w *tenantFabric) answers(what, key, method, path, body string, header []string, words map[string]pair) (status [2]int, got [2]string) {
	w.t.Helper()
	for i := range got {
		fill := make([]string, 0, 2*len(words))
		back := []string{}
		for word, p := range words {
			id := []string{p.foreign, p.unknown}[i]
			fill = append(fill, word, id)
			if p != w.ids["/tenants/"] && p != w.ids["/workers/"] { // no answer contains these IDs, and they are parts of other words ("credential" contains "red")
				back = append(back, id, word)
			}
		}
		f := strings.NewReplacer(fill...)
		var h http.Header
		status[i], h, got[i] = w.with(key, method, f.Replace(path), f.Replace(body), append(replaced(f, header), "X-Request-Id", "x")...)
		got[i], _, _ = strings.Cut(got[i], `"request_id"`)
		got[i] = strings.NewReplacer(back...).Replace(got[i])
		got[i] = h.Get("Content-Type") + "\n" + volatile.ReplaceAllString(got[i], "…")
		for _, secret := range []string{"vault", "reds", "redown", w.ids["/calls/"].foreign, w.ids["/batches/"].foreign, w.ids["/keys/"].foreign, "red/nightly"} {
			if strings.Contains(got[i], secret) {
				w.t.Errorf("%s tells of %s: %s", what, secret, got[i])
			}
		}
	}
	return status, got
}

func replaced(f *strings.Replacer, all []string) []string {
	out := make([]string, len(all))
	for i := range all {
		out[i] = f.Replace(all[i])
	}
	return out
}

// TestForeignTenantIDsAreAnsweredLikeUnknownOnes sends every operation of the document with
// several credentials of another tenant. An operation that has no ID in its path and is not in the
// table fails the test.
func TestForeignTenantIDsAreAnsweredLikeUnknownOnes(t *testing.T) {
	w := openTenantFabric(t)
	asked := 0
	for _, set := range []string{"reds", "redown"} {
		w.ids["/sets/"] = pair{set, "grey"}
		w.words["SET"] = w.ids["/sets/"]
		asked += w.askAll(set == "reds")
	}
	if asked < 3*60 {
		t.Errorf("only %d requests were sent", asked)
	}
	// The hidden resources exist: red sees them.
	for _, path := range []string{"/servers/vault", "/sets/reds", "/sets/redown", "/calls/" + w.ids["/calls/"].foreign, "/batches/" + w.ids["/batches/"].foreign, "/keys/" + w.ids["/keys/"].foreign, "/tenants/red"} {
		if status, _, answer := w.with(w.red, "GET", path, ""); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	// A hidden or foreign name is free.
	for _, set := range []string{"reds", "redown", "grey"} {
		if status, _, answer := w.with(w.blues["all"], "PUT", "/sets/"+set, `{"include":[{"server":"s"}]}`, "If-None-Match", "*"); status != http.StatusOK {
			t.Errorf("%s: %d %s", set, status, answer)
		}
	}
	w.events()
	w.batches()
}

// askAll sends all operations, or those that name a set, and returns the number of requests.
func (w *tenantFabric) askAll(all bool) (asked int) {
	t := w.t
	t.Helper()
	for _, op := range w.operations() {
		for as, key := range w.blues {
			what := op.id + " as " + as
			if !strings.Contains(op.path, "{") {
				rows, known := naming[op.id]
				if !known {
					t.Fatalf("%s (%s %s) is not in the table: say there how it names servers, sets and ids, if it does", op.id, op.method, op.path)
				}
				for _, row := range rows {
					if !all && !strings.Contains(row[0]+row[1], "SET") && op.id != "list-sets" {
						continue
					}
					body := row[1]
					if !all { // names of keys can be used only once
						body = strings.Replace(body, `"blue/SERVER"`, `"blue/SET"`, 1)
					}
					w.alike(what, key, op.method, op.path+row[0], body, nil, w.words)
					asked++
				}
				continue
			}
			at := slices.IndexFunc(slices.Sorted(maps.Keys(w.ids)), func(prefix string) bool { return strings.HasPrefix(op.path, prefix+"{") })
			if at < 0 {
				t.Fatalf("%s is on something that the test does not have: %s", op.id, op.path)
			}
			prefix := slices.Sorted(maps.Keys(w.ids))[at]
			if !all && prefix != "/sets/" {
				continue
			}
			rest := op.path[strings.Index(op.path, "}")+1:]
			path := prefix + "ID" + strings.NewReplacer("{tool}", "read", "{name}", "ask", "{uri}", "mem%3A1").Replace(rest)
			body := bodies[op.id]
			if body == "" && op.method != "GET" && op.method != "DELETE" {
				body = `{}`
			}
			header := []string{}
			if strings.HasSuffix(body, "\n") {
				header = []string{"Content-Type", "application/x-ndjson"}
			}
			w.alike(what, key, op.method, path, body, header, map[string]pair{"ID": w.ids[prefix]})
			asked++
		}
	}
	return asked
}

// batches compares a line for a hidden server with one for an unknown server. Both wait, because the
// server may appear. The second line of each batch shows that the first was tried.
func (w *tenantFabric) batches() {
	var counts [2]string
	for i, server := range []string{"vault", "crypt"} {
		_, h, _ := w.with(w.blues["all"], "POST", "/batches", fmt.Sprintf(`{"calls":[{"server":%q,"tool":"read"},{"server":"s","tool":"read"}]}`, server))
		polltest.Within(w.t, 30*time.Second, "the second line ends", func() bool {
			_, _, text := w.with(w.blues["all"], "GET", h.Get("Location"), "")
			_, after, _ := strings.Cut(text, `"counts":`)
			counts[i], _, _ = strings.Cut(after, "}")
			return strings.Contains(text, `"succeeded":1`)
		})
	}
	if counts[0] != counts[1] || counts[0] == "" {
		w.t.Errorf("a line for a hidden server: %s; for an unknown one: %s", counts[0], counts[1])
	}
}

// events reads the first event of each stream: the visible fleet.
func (w *tenantFabric) events() {
	for key, wants := range map[string]bool{w.red: true, w.blues["all"]: false} {
		r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.base+"/events?include=changes", nil)
		if err != nil {
			w.t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		resp, err := w.http.Do(r)
		if err != nil {
			w.t.Fatal(err)
		}
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "data:") {
		}
		if got := lines.Text(); strings.Contains(got, "vault") != wants || !strings.Contains(got, `"id":"s"`) {
			w.t.Errorf("sees vault %t: %s", !wants, got)
		}
		_ = resp.Body.Close()
	}
}

// TestAnMCPClientOfAnotherTenantFindsNothing does the same for the MCP methods.
func TestAnMCPClientOfAnotherTenantFindsNothing(t *testing.T) {
	w := openTenantFabric(t)
	words := map[string]pair{"SERVER": w.ids["/servers/"], "SET": w.ids["/sets/"], "CALL": w.ids["/calls/"]}
	ask := func(key, mount, method, name, members string) {
		t.Helper()
		header := []string{"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", mcpwire.Modern, "Mcp-Method", method}
		if name != "" {
			header = append(header, "Mcp-Name", name)
		}
		w.alike(method+" at "+mount, key, "POST", mount, modern(method, members), header, words)
	}
	for _, key := range w.blues {
		for _, mount := range []string{"/mcp", "/mcp/SERVER", "/mcp/@SET", "/mcp?mode=search"} {
			for _, method := range []string{"tools/list", "resources/list", "resources/templates/list", "prompts/list", "server/discover"} {
				ask(key, mount, method, "", "")
			}
			ask(key, mount, "tools/call", "SERVER__read", `"name":"SERVER__read","arguments":{}`)
			ask(key, mount, "tools/call", "read", `"name":"read","arguments":{}`)
			ask(key, mount, "tools/call", "find_tools", `"name":"find_tools","arguments":{"query":"read"}`)
			ask(key, mount, "tools/call", "call_tool", `"name":"call_tool","arguments":{"name":"SERVER__read","arguments":{}}`)
			ask(key, mount, "resources/read", "callyard:SERVER:mem:1", `"uri":"callyard:SERVER:mem:1"`)
			ask(key, mount, "prompts/get", "SERVER__ask", `"name":"SERVER__ask"`)
			ask(key, mount, "completion/complete", "", `"ref":{"type":"ref/prompt","name":"SERVER__ask"},"argument":{"name":"a","value":""}`)
			if mount == "/mcp/@SET" {
				words["SET"] = pair{"redown", "grey"}
				ask(key, mount, "tools/list", "", "")
				ask(key, mount, "server/discover", "", "")
				ask(key, mount, "tools/call", "s__read", `"name":"s__read","arguments":{}`)
				words["SET"] = w.ids["/sets/"]
			}
			for _, method := range []string{mcpwire.MethodGetTask, mcpwire.MethodUpdateTask, mcpwire.MethodCancelTask} {
				ask(key, mount, method, "CALL", `"taskId":"CALL","inputResponses":{}`)
			}
		}
	}
	header := []string{"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", mcpwire.Modern, "Mcp-Method", "tools/list"}
	if status, _, answer := w.with(w.red, "POST", "/mcp", modern("tools/list", ""), header...); status != http.StatusOK || !strings.Contains(answer, "vault__read") {
		t.Errorf("red: %d %s", status, answer)
	}
	if status, _, answer := w.with(w.blues["all"], "POST", "/mcp", modern("tools/list", ""), header...); status != http.StatusOK || !strings.Contains(answer, "s__read") {
		t.Errorf("blue sees what is its own: %d %s", status, answer)
	}
}

func modern(method, members string) string {
	if members != "" {
		members += ","
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{"%s":"%s","%s":{}}}}`, method, members, mcpwire.MetaProtocolVersion, mcpwire.Modern, mcpwire.MetaClientCapabilities)
}

// TestCredentialsOfAnUnknownTenantAreRefused checks keys of a tenant that is not in the section.
func TestCredentialsOfAnUnknownTenantAreRefused(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	key, hash := authn.Generate()
	o := frontdoor.Options{Tenants: tenants.New(settings.Tenants{"red": {Servers: []string{"*"}}})}
	o.Config.Keys = []authn.Key{{Name: "eve", Hash: hash, Tenant: "green"}}
	d := openDoor(t, srv, o)
	if status, _, answer := d.with(key, "GET", "/servers", ""); status != http.StatusUnauthorized || !strings.Contains(answer, "not configured") {
		t.Errorf("%d %s", status, answer)
	}
	if status, _, _ := d.with(d.key, "GET", "/servers", ""); status != http.StatusOK {
		t.Errorf("the default tenant: %d", status)
	}
}

// TestPolicyTestOfDraftOrOtherPrincipalNeedsDryRunRights tests calls with keys that see the tool. One
// of them belongs to an administrator, but not of the default tenant.
func TestPolicyTestOfDraftOrOtherPrincipalNeedsDryRunRights(t *testing.T) {
	w := openTenantFabric(t)
	for _, as := range []string{"reader", "wide"} {
		for body, want := range map[string]int{
			`{"server":"s","tool":"read"}`: http.StatusOK, `{"server":"s","tool":"read","policy":"rules: []"}`: http.StatusForbidden, `{"server":"s","tool":"read","principal":{"name":"ada"}}`: http.StatusForbidden,
		} {
			if status, _, answer := w.with(w.blues[as], "POST", "/policy/test", body, "Content-Type", "application/json"); status != want {
				t.Errorf("%s %s: %d %s", as, body, status, answer)
			}
		}
	}
}

package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/kit/mcpwire"
)

// enterAs opens a session of a revision.
func (f *fabric) enterAs(version, path, capabilities string) *legacyClient {
	f.t.Helper()
	a := f.send(f.request("POST", path, fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"t","version":"1"}}}`, version, capabilities)))
	if a.status != 200 || getString([]byte(a.result(f.t)), "protocolVersion") != version {
		f.t.Fatalf("initialize: %d %s", a.status, a.body)
	}
	return &legacyClient{f, path, a.header.Get(mcpwire.HeaderSessionID)}
}

// batch sends a body in the session, as a client of revision 2025-03-26 does: without the version
// header.
func (r *legacyClient) batch(body string, header ...string) answer {
	r.f.t.Helper()
	return r.f.send(r.f.request("POST", r.path, body, append([]string{mcpwire.HeaderSessionID, r.id}, header...)...))
}

// byID returns the answers of a batch, as an array or as events.
func (a answer) byID(t *testing.T) map[string][]byte {
	t.Helper()
	all := make(map[string][]byte)
	var messages []json.RawMessage
	if strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream") {
		for _, m := range a.messages() {
			messages = append(messages, m)
		}
	} else if err := json.Unmarshal(a.body, &messages); err != nil {
		t.Fatalf("%v: %d %s", err, a.status, a.body)
	}
	for _, m := range messages {
		if id := get(m, "id"); id != nil {
			if all[string(id)] != nil {
				t.Fatalf("%s is answered twice: %s", id, a.body)
			}
			all[string(id)] = m
		}
	}
	return all
}

const oneBatch = `[
	{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1.0}}},
	{"jsonrpc":"2.0","method":"notifications/initialized"},
	{"jsonrpc":"2.0","id":"two","method":"tools/list"},
	{"jsonrpc":"2.0","id":3,"method":"ping"},
	{"jsonrpc":"2.0","id":4,"method":"no/such"},
	{"jsonrpc":"2.0","id":5,"method":"initialize","params":{}},
	{"jsonrpc":"1.0"},
	{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"steps","_meta":{"progressToken":"p"}}}
]`

func TestBatchIsServedInRevisionsWithBatches(t *testing.T) {
	f := openFabric(t, nil)
	for _, version := range []string{"2025-03-26", "2024-11-05"} {
		s := f.enterAs(version, "/mcp/demo", `{}`)
		for _, accept := range []string{"application/json, text/event-stream", "application/json"} {
			a := s.batch(oneBatch, "Accept", accept)
			all := a.byID(t)
			if a.status != http.StatusOK || len(all) != 7 {
				t.Fatalf("%s: %d %s", accept, a.status, a.body)
			}
			for id, want := range map[string]string{"1": `"got":{"a":1.0}`, `"two"`: `"tools":[`, "3": `"result":{}`, "4": `"code":-32601`, "5": `initialize cannot be part of a batch`, "null": `"code":-32600`, "6": `"content":[]`} {
				if !strings.Contains(string(all[id]), want) {
					t.Errorf("%s, %s: %s", accept, id, all[id])
				}
			}
			if progress := strings.Count(string(a.body), `"progressToken":"p"`); (progress == 20) != strings.Contains(accept, "event") {
				t.Errorf("%s: %d notifications of progress", accept, progress)
			}
			if a.header.Get("Callyard-Call-Id") != "" {
				t.Error("the answer names one of several calls")
			}
		}
	}
}

func TestABatchWithoutARequestHasNoAnswer(t *testing.T) {
	s := openFabric(t, nil).enterAs("2025-03-26", "/mcp/demo", `{}`)
	if a := s.batch(`[{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":"callyard-9","result":{}}]`); a.status != http.StatusAccepted || len(a.body) != 0 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// Messages of a batch run concurrently, so a message can cancel another one.
func TestABatchCanCancelItsOwnCall(t *testing.T) {
	s := openFabric(t, nil).enterAs("2025-03-26", "/mcp/demo", `{}`)
	a := s.batch(`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hang"}},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}},{"jsonrpc":"2.0","id":2,"method":"ping"}]`)
	if all := a.byID(t); len(all) != 1 || all["2"] == nil {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// Requests of a server are sent to the client on the stream of the batch.
func TestServerRequestsAreSentOnTheBatchStream(t *testing.T) {
	f := openFabric(t, nil)
	s := f.enterAs("2025-03-26", "/mcp/demo", `{"roots":{},"elicitation":{}}`)
	res, err := f.client.Do(f.request("POST", s.path, `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}]`, mcpwire.HeaderSessionID, s.id))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	next := events(t, res)
	question := []byte(next())
	if getString(question, "method") != mcpwire.MethodElicit {
		t.Fatalf("%s", question)
	}
	if a := s.batch(`[{"jsonrpc":"2.0","id":` + string(get(question, "id")) + `,"result":{"action":"decline"}}]`); a.status != http.StatusAccepted {
		t.Errorf("%d %s", a.status, a.body)
	}
	if got := next(); !strings.Contains(got, `"decline"`) || !strings.Contains(got, `"id":1`) {
		t.Error(got)
	}
}

func TestABatchIsBounded(t *testing.T) {
	f := openFabric(t, nil)
	s := f.enterAs("2025-03-26", "/mcp/demo", `{}`)
	many := func(n int) string {
		all := slices.Repeat([]string{`{"jsonrpc":"2.0","method":"notifications/initialized"}`}, n)
		return "[" + strings.Join(all, ",") + "]"
	}
	if a := s.batch(many(maxBatch)); a.status != http.StatusAccepted {
		t.Errorf("%d %s", a.status, a.body)
	}
	for body, want := range map[string]int{many(maxBatch + 1): 413, `[]`: 400, ` [`: 400, `[{}`: 400, `[{"jsonrpc":"2.0","id":1,"method":"ping"}] x`: 400} {
		if a := s.batch(body); a.status != want || a.fault(t).Code == 0 {
			t.Errorf("%.40s: %d %s", body, a.status, a.body)
		}
	}
}

// The newer revisions have no batches, and a batch needs a session.
func TestBatchIsRefusedInRevisionsWithoutBatches(t *testing.T) {
	f := openFabric(t, nil)
	const batch = `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		s := f.enterAs(version, "/mcp/demo", `{}`)
		for _, header := range []string{version, ""} {
			if a := s.batch(batch, "Mcp-Protocol-Version", header); a.status != 400 || a.fault(t).Code != mcpwire.CodeInvalidRequest || !strings.Contains(string(a.body), "Batches") {
				t.Errorf("%s: %d %s", version, a.status, a.body)
			}
		}
	}
	if a := f.send(f.request("POST", "/mcp/demo", batch, modernHeaders("ping", "")...)); a.status != 400 || !strings.Contains(string(a.body), "Batches") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := f.send(f.request("POST", "/mcp/demo", batch)); a.status != 400 || !strings.Contains(string(a.body), "Mcp-Session-Id") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

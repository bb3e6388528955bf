package web_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/approver/web"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/kit/goldentest"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

func decode(t *testing.T, a answer, v any) {
	t.Helper()
	if a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		t.Fatal(err)
	}
}

func decision(kind, digest, more string) string {
	return fmt.Sprintf(`{"kind":%q,"digest":%q%s}`, kind, digest, more)
}

func TestApprovalHasEverythingADecisionNeeds(t *testing.T) {
	f := open(t, people(), nil)
	args := `{"n": 12345678901234567890, "target":"a\u202e"}`
	a := f.hold(args, requester(), nil)
	got := f.api("ada", "GET", "/approvals/"+string(a.ID), "")
	var d struct {
		Arguments struct{ Digest, Base64, Text string }
	}
	decode(t, got, &d)
	if raw, err := base64.StdEncoding.DecodeString(d.Arguments.Base64); err != nil || string(raw) != args || d.Arguments.Text != args || d.Arguments.Digest != schema.Digest(raw) {
		t.Errorf("the arguments are not those that were stored: %+v", d)
	}
	// Compare with the golden file, without the values that differ between runs.
	var all map[string]any
	decode(t, got, &all)
	for _, name := range []string{"id", "call_id", "created_at", "expires_at", "expires_in_ms", "binding_digest"} {
		if all[name] == nil {
			t.Errorf("%s is missing", name)
		}
		delete(all, name)
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	goldentest.Text(t, "testdata/approval.json", string(text)+"\n")
}

func TestDeletedArgumentsAreReportedAsDeleted(t *testing.T) {
	f := open(t, people(), nil)
	args := `{"target":"` + strings.Repeat("x", 5000) + `"}`
	a := f.hold(args, requester(), nil)
	var d struct {
		Arguments struct {
			Digest, Base64, Forgotten string
			Size                      int
		}
		Decisions []ledger.Decision
	}
	decode(t, f.api("ada", "GET", "/approvals/"+string(a.ID), ""), &d)
	if raw, err := base64.StdEncoding.DecodeString(d.Arguments.Base64); err != nil || string(raw) != args || d.Arguments.Forgotten != "" {
		t.Errorf("while it waits: %.200s, %v", raw, err)
	}
	decode(t, f.api("ada", "POST", "/approvals/"+string(a.ID)+"/decisions", decision("deny", a.Binding.ArgumentsDigest, `,"reason":"no"`)), &struct{}{})
	polltest.Until(t, "the arguments are deleted", func() bool {
		_, err := f.ledger.Asked(t.Context(), schema.DefaultTenant, a.ID)
		return schema.KindOf(err) == schema.KindNotFound
	})
	decode(t, f.api("ada", "GET", "/approvals/"+string(a.ID), ""), &d)
	if !strings.Contains(d.Arguments.Forgotten, "have been deleted") || d.Arguments.Base64 != "" || d.Arguments.Size != len(args) || d.Arguments.Digest != a.Binding.ArgumentsDigest || len(d.Decisions) != 1 {
		t.Errorf("after the end: %+v", d)
	}
	ada := f.signedIn("ada")
	if page := f.do(ada, "GET", "/a/"+string(a.ID), ""); page.status != http.StatusOK || !strings.Contains(page.body, "have been deleted") {
		t.Errorf("the page is %d %s", page.status, page.body)
	}
	if page := f.do(ada, "GET", "/history", ""); page.status != http.StatusOK || !strings.Contains(page.body, string(a.ID)) {
		t.Errorf("the history is %d", page.status)
	}
}

func TestAnApprovalNeedsTheDigestThatWasShown(t *testing.T) {
	f := open(t, people(), nil)
	a := f.hold(`{"target":"x"}`, requester(), nil)
	path := "/approvals/" + a.ID + "/decisions"
	for _, wrong := range []string{"", schema.Digest([]byte("other"))} {
		if got := f.api("ada", "POST", string(path), decision("approve", wrong, "")); got.status != http.StatusConflict {
			t.Errorf("digest %q: %d %s", wrong, got.status, got.body)
		}
	}
	var s struct{ State string }
	decode(t, f.api("ada", "POST", string(path), decision("approve", a.Binding.ArgumentsDigest, `,"reason":"fine"`)), &s)
	is := f.state(a.ID)
	if s.State != "approved" || is.State != ledger.Approved || is.Decisions[0].By != "ada" || is.Decisions[0].Channel != "api" || is.Decisions[0].Reason != "fine" {
		t.Errorf("%+v %+v", s, is)
	}
}

func TestEditRunsExactlyTheSubmittedBytes(t *testing.T) {
	f := open(t, people(), nil)
	a := f.hold(`{"target":"x"}`, requester(), nil)
	path := "/approvals/" + a.ID + "/decisions"
	for what, c := range map[string]struct {
		digest, args string
		status       int
	}{
		"another digest": {schema.Digest(nil), `{"target":"y"}`, 409}, "a duplicate key": {a.Binding.ArgumentsDigest, `{"target":"y","target":"z"}`, 400},
		"no object": {a.Binding.ArgumentsDigest, `[1]`, 400}, "against the schema": {a.Binding.ArgumentsDigest, `{"target":1}`, 422},
		"nothing": {a.Binding.ArgumentsDigest, `null`, 400},
	} {
		if got := f.api("ada", "POST", string(path), decision("edit", c.digest, `,"arguments":`+c.args)); got.status != c.status {
			t.Errorf("%s: %d %s", what, got.status, got.body)
		}
	}
	edited := `{ "target" : "y", "n": 1.0e0,  "big":98765432109876543210 }`
	if got := f.api("ada", "POST", string(path), decision("edit", a.Binding.ArgumentsDigest, `,"arguments":`+edited)); got.status != http.StatusOK {
		t.Fatal(got.status, got.body)
	}
	if raw, err := f.ledger.Arguments(t.Context(), schema.DefaultTenant, a.ID); err != nil || string(raw) != edited {
		t.Errorf("%s %v", raw, err)
	}
	var d struct {
		Asked struct{ Text string } `json:"asked_arguments"`
	}
	decode(t, f.api("ada", "GET", "/approvals/"+string(a.ID), ""), &d)
	if d.Asked.Text != `{"target":"x"}` {
		t.Errorf("%+v", d)
	}
}

func TestEachDecisionKindHasItsState(t *testing.T) {
	f := open(t, people(), nil)
	for kind, want := range map[string]ledger.State{"deny": ledger.Denied, "revoke": ledger.Revoked, "extend": ledger.Pending} {
		a := f.hold(`{"target":"x"}`, requester(), nil)
		if got := f.api("bob", "POST", "/approvals/"+string(a.ID)+"/decisions", decision(kind, "", "")); got.status != http.StatusOK {
			t.Errorf("%s: %d %s", kind, got.status, got.body)
		}
		if is := f.state(a.ID); is.State != want || kind == "extend" && !is.Expires.After(a.Expires) {
			t.Errorf("%s: %+v", kind, is)
		}
	}
}

func TestABodyThatIsNotExactlyADecisionIsRefused(t *testing.T) {
	f := open(t, people(), nil)
	a := f.hold(`{"target":"x"}`, requester(), nil)
	path := "/approvals/" + a.ID + "/decisions"
	for _, body := range []string{
		``, `null`, `[]`, `{`, `{}`, `{"kind":"approved"}`, `{"Kind":"deny"}`, `{"kind":"deny","kind":"deny"}`, `{"kind":null}`, `{"kind":1}`,
		`{"kind":"deny","x":1}`, `{"kind":"deny","arguments":{}}`, `{"kind":"deny","reason":null}`, "{\"kind\":\"deny\",\"reason\":\"\xff\"}", `{"kind":"deny"} {}`,
		`{"kind":"deny","reason":"` + strings.Repeat("x", 5000) + `"}`,
	} {
		if got := f.api("ada", "POST", string(path), body, "Content-Type", "application/json"); got.status != http.StatusBadRequest || got.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%.60s: %d %s", body, got.status, got.body)
		}
	}
	if got := f.api("ada", "POST", string(path), `{"kind":"deny"}`, "Content-Type", "text/plain"); got.status != http.StatusUnsupportedMediaType {
		t.Errorf("text/plain: %d", got.status)
	}
	if got := f.api("ada", "POST", string(path), `{"kind":"deny","reason":"`+strings.Repeat("x", 2<<20)+`"}`); got.status != http.StatusRequestEntityTooLarge {
		t.Errorf("too large: %d", got.status)
	}
	if is := f.state(a.ID); is.State != ledger.Pending || len(is.Decisions) > 0 {
		t.Errorf("%+v", is)
	}
}

func TestAPIRequiresAKeyAndIgnoresCookies(t *testing.T) {
	f := open(t, people(), nil)
	a := f.hold(`{"target":"x"}`, requester(), nil)
	c := f.signedIn("ada")
	for _, p := range []string{"/approvals", "/approvals/" + string(a.ID)} {
		if got := f.do(c, "GET", p, ""); got.status != http.StatusUnauthorized {
			t.Errorf("%s with a cookie: %d", p, got.status)
		}
	}
	path := "/approvals/" + a.ID + "/decisions"
	if got := f.do(c, "POST", string(path), `{"kind":"deny"}`, "Content-Type", "application/json"); got.status != http.StatusUnauthorized {
		t.Errorf("a decision with a cookie: %d", got.status)
	}
	if got := f.do(f.browser(), "POST", string(path), `{"kind":"deny"}`, "Content-Type", "application/json", "X-API-Key", "wrong"); got.status != http.StatusUnauthorized {
		t.Errorf("a wrong key: %d", got.status)
	}
}

func TestRequestersCannotDecideOwnCallsUnderAnyName(t *testing.T) {
	f := open(t, people(), nil)
	for _, c := range []struct {
		what string
		asks schema.Principal
		who  string
	}{
		{"the same key", requester(), "agent"},
		{"another key of the same owner", requester(), "agent-2"},
		{"the owner's own name as a key", requester(), "team"},
		{"a key whose owner is the one who asks", requester(), "lead"},
		{"a second key of a person who asked under their own name", schema.Principal{Name: "solo"}, "solo-2"},
		{"a person behind the service that asked", schema.Principal{Name: "solo-2", Owner: "solo"}, "solo"},
		{"an owner that is written as the name of the one who decides", schema.Principal{Name: "bot", Owner: "bob"}, "bob"},
	} {
		a := f.hold(`{"target":"x"}`, c.asks, nil)
		for _, kind := range []string{"approve", "deny", "extend", "revoke"} {
			if got := f.api(c.who, "POST", "/approvals/"+string(a.ID)+"/decisions", decision(kind, a.Binding.ArgumentsDigest, "")); got.status != http.StatusForbidden {
				t.Errorf("%s, %s: %d %s", c.what, kind, got.status, got.body)
			}
		}
		if got := f.api(c.who, "POST", "/approvals/"+string(a.ID)+"/decisions", decision("edit", a.Binding.ArgumentsDigest, `,"arguments":{"target":"y"}`)); got.status != http.StatusForbidden {
			t.Errorf("%s, edit: %d %s", c.what, got.status, got.body)
		}
		if is := f.state(a.ID); is.State != ledger.Pending || len(is.Decisions) > 0 || is.Edited != nil {
			t.Errorf("%s: %+v", c.what, is)
		}
	}
}

func TestApprovalsOfOthersAreNotFound(t *testing.T) {
	f := open(t, people(), nil)
	a := f.hold(`{"target":"x"}`, requester(), nil)
	missing := f.api("eve", "GET", "/approvals/appr_"+strings.Repeat("0", 26), "")
	for _, got := range []answer{f.api("eve", "GET", "/approvals/"+string(a.ID), ""), f.api("eve", "POST", "/approvals/"+string(a.ID)+"/decisions", decision("deny", "", ""))} {
		if got.status != http.StatusNotFound || strings.ReplaceAll(got.body, string(a.ID), "X") != strings.ReplaceAll(missing.body, "appr_"+strings.Repeat("0", 26), "X") {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	for name, want := range map[string]int{"eve": 0, "ada": 1, "olga": 1, "agent": 1} {
		var list struct{ Approvals []struct{ ID string } }
		decode(t, f.api(name, "GET", "/approvals", ""), &list)
		if len(list.Approvals) != want {
			t.Errorf("%s sees %d", name, len(list.Approvals))
		}
	}
	// Observers may see an approval, but not decide.
	if got := f.api("olga", "POST", "/approvals/"+string(a.ID)+"/decisions", decision("deny", "", "")); got.status != http.StatusForbidden {
		t.Errorf("an observer decides: %d", got.status)
	}
	if is := f.state(a.ID); is.State != ledger.Pending {
		t.Errorf("%+v", is)
	}
}

func TestListsArePagedAndFiltered(t *testing.T) {
	f := open(t, people(), nil)
	for range 5 {
		f.hold(`{"target":"x"}`, requester(), nil)
	}
	f.hold(`{"target":"x"}`, requester(), func(r *risk.Approval) { r.Groups = []string{"others"} })
	var ids []string
	cursor := ""
	for pages := 0; ; pages++ {
		var list struct {
			Approvals []struct{ ID string }
			Next      string `json:"next_cursor"`
		}
		decode(t, f.api("ada", "GET", "/approvals?state=pending,approved&limit=2&cursor="+cursor, "", "X", "y"), &list)
		for _, a := range list.Approvals {
			ids = append(ids, a.ID)
		}
		if cursor = list.Next; cursor == "" {
			if pages != 2 {
				t.Errorf("%d pages", pages+1)
			}
			break
		}
	}
	if len(ids) != 5 {
		t.Errorf("%v", ids)
	}
	for query, want := range map[string]int{"?state=denied": 200, "?state=nope": 400, "?limit=0": 400, "?cursor=%00": 400, "?color=red": 400, "?tool=a&tool=b": 400, "?server=other": 200} {
		if got := f.api("ada", "GET", "/approvals"+query, ""); got.status != want {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
}

func TestWithoutKeysAccessIsLocalOnly(t *testing.T) {
	f := open(t, nil, nil)
	a := f.hold(`{"target":"x"}`, requester(), nil)
	if got := f.api("", "GET", "/approvals", "", "Host", "rebound.example"); got.status != http.StatusForbidden {
		t.Errorf("another host: %d", got.status)
	}
	if got := f.api("", "POST", "/approvals/"+string(a.ID)+"/decisions", decision("deny", "", "")); got.status != http.StatusOK {
		t.Errorf("%d %s", got.status, got.body)
	}
	if is := f.state(a.ID); is.State != ledger.Denied || is.Decisions[0].By != authn.Local {
		t.Errorf("%+v", is)
	}
}

func TestRoutesMatchTheOpenAPIDocument(t *testing.T) {
	f := open(t, people(), nil)
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]json.RawMessage
	}
	decode(t, f.api("", "GET", "/openapi.json", ""), &doc)
	var described []string
	for path, methods := range doc.Paths {
		for method := range methods {
			described = append(described, strings.ToUpper(method)+" "+path)
		}
	}
	routes := f.web.Routes()
	slices.Sort(routes)
	slices.Sort(described)
	if diff := cmp.Diff(routes, described); diff != "" || doc.OpenAPI != "3.1.0" {
		t.Errorf("(-routes +described):\n%s", diff)
	}
	if got := f.api("", "GET", "/approvals/x/y/z", ""); got.status != http.StatusNotFound {
		t.Errorf("an unknown path: %d", got.status)
	}
	got := f.api("ada", "DELETE", "/approvals", "")
	if got.status != http.StatusMethodNotAllowed || got.header.Get("Allow") != "GET, HEAD" {
		t.Errorf("DELETE: %d %v", got.status, got.header)
	}
}

func TestAProbeOfAnApproverThatIsNotReadyIsNotLogged(t *testing.T) {
	f := open(t, nil, func(o *web.Options) { o.Ready = func() error { return errors.New("NATS is RECONNECTING") } })
	for range 3 {
		resp, err := http.Get(f.url + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "1" || !strings.Contains(string(body), "NATS is RECONNECTING") {
			t.Errorf("%s %v: %s", resp.Status, resp.Header, body)
		}
	}
	if f.log.Len() != 0 {
		t.Errorf("it logged %s", f.log)
	}
}

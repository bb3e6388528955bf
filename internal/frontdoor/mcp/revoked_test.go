package mcp

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/callers"
	"github.com/callyard/callyard/pkg/schema"
)

// withKey adds an API key to each request.
type withKey struct {
	key  string
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (w withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.key)
	return w.next.RoundTrip(r)
}

// openKeyed is openJudged for a client with an API key, which revoke removes.
func openKeyed(t *testing.T, policy string) (f *fabric, revoke func()) {
	t.Helper()
	key, hash := authn.Generate()
	_, other := authn.Generate()
	rest := authn.Key{Name: "other", Hash: other}
	table, err := authn.NewKeys([]authn.Key{{Name: "agent", Hash: hash}, rest})
	if err != nil {
		t.Fatal(err)
	}
	f = openJudged(t, judge(t, policy), func(o *Options) {
		o.Keys, o.Heartbeat = callers.New(callers.Options{Keys: table}), 10*time.Millisecond
	})
	f.client.Transport = withKey{key, f.client.Transport}
	return f, func() {
		if err := table.Replace([]authn.Key{rest}); err != nil {
			t.Fatal(err)
		}
	}
}

const askCaller = "rules:\n  - name: ask\n    match: {server: risky}\n    approval: {by: caller}\n"

func TestQuestionAboutAHeldCallEndsWithTheKeyOfItsCaller(t *testing.T) {
	f, revoke := openKeyed(t, askCaller)
	next, question := f.unanswered(t)
	revoke()
	withdrawn(t, next, question)
	if got := next(); !strings.Contains(got, string(schema.KindUnauthenticated)) {
		t.Error(got)
	}
}

func TestQuestionOfAServerEndsWithTheKeyOfItsCaller(t *testing.T) {
	f, revoke := openKeyed(t, askCaller)
	next, to, seq := f.enter("/mcp/demo", `{"roots":{}}`).hangingCall()
	f.Worker.Listener.Said(to, seq, 1, []byte(`{"method":"roots/list"}`))
	question := []byte(next())
	if !strings.Contains(string(question), `"roots/list"`) {
		t.Fatalf("%s", question)
	}
	revoke()
	withdrawn(t, next, question)
	if got := <-f.Worker.Told; got.Object != refusedUnanswered {
		t.Errorf("the server gets %+v", got)
	}
	f.ends(to, seq)
}

func TestWaitForAnApproverEndsWithTheKeyOfTheCaller(t *testing.T) {
	f, revoke := openKeyed(t, askPeople)
	_, state := f.heldByPeople(`{}`)
	members := fmt.Sprintf(`"name":"echo","arguments":{},"inputResponses":%s,"requestState":%q`, looked, state)
	res, err := f.client.Do(f.request("POST", "/mcp/risky", modernBody("tools/call", members, canURLs, ""), modernHeaders("tools/call", "echo")...))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	// The stream begins with a heartbeat while the call waits.
	if kind := res.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		t.Fatalf("%d %s", res.StatusCode, kind)
	}
	revoke()
	if got := events(t, res)(); !strings.Contains(got, string(schema.KindUnauthenticated)) {
		t.Error(got)
	}
}

package chaos

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// frontDoor starts a fake front door with the given answers by path, and 404 for other paths.
func frontDoor(t *testing.T, answers map[string]string) *run {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := answers[r.URL.RequestURI()]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	r := &run{c: &Campaign{Log: slog.New(slog.DiscardHandler)}, f: &fleet{urls: []string{s.URL}, at: map[string]*host{}}, book: newBook()}
	r.report = &Report{States: map[string]int{}}
	return r
}

const (
	pathOfLog     = "/calls?tool=effect&limit=1000&cursor="
	pathOfBatches = "/batches?limit=1000&cursor="
)

func every(*clientCall) bool { return true }

func TestStoredCallsAreReadFromTheAPI(t *testing.T) {
	record := func(id, arguments, more string) string {
		return fmt.Sprintf(`{"id":%q,"durable":true,"arguments_digest":%q%s}`, id, digestOf(arguments), more)
	}
	r := frontDoor(t, map[string]string{
		pathOfLog:          `{"calls":[` + record("call_1", "one", "") + `],"next":"p2"}`,
		pathOfLog + "p2":   `{"calls":[` + record("call_0", "one", "") + `,` + record("call_x", "other", "") + `,` + record("call_9", "one", `,"batch_id":"batch_9"`) + `]}`,
		"/calls/call_1":    `{"state":"succeeded"}`,
		"/calls/call_0":    `{"state":"canceled"}`,
		"/calls/call_2":    `{"state":"running"}`,
		pathOfBatches:      `{"batches":[{"id":"batch_1"}]}`,
		"/batches/batch_1": `{"calls":3}`,
		"/batches/batch_1/results?limit=1000&cursor=": `{"custom_id":"b1-0","call_id":"call_b0","state":"unknown","cursor":"1"}
{"custom_id":"b1-1","call_id":"call_b1","state":"failed","cursor":"2"}
{"custom_id":"b1-0","call_id":"call_b0","sta`,
		"/batches/batch_1/results?limit=1000&cursor=2": `{"custom_id":"b1-0","call_id":"call_b0","state":"succeeded","cursor":"3"}` + "\n",
		"/batches/batch_1/results?limit=1000&cursor=3": "",
	})
	for _, c := range []clientCall{
		{Effect: "s1", ID: "call_1", digest: digestOf("one")}, {Effect: "s2", ID: "call_2", digest: digestOf("two")}, {Effect: "s3", ID: "call_3", digest: digestOf("three")},
		{Effect: "b1-0", ID: "call_b0", Batch: "b1"},
	} {
		r.book.begin(&c)
	}
	got, err := r.keep(t.Context(), every)
	if err != nil {
		t.Fatal(err)
	}
	for _, rows := range got.calls {
		for i := range rows[1:] { // the readers are concurrent
			if rows[i].id > rows[i+1].id {
				rows[i], rows[i+1] = rows[i+1], rows[i]
			}
		}
	}
	want := kept{
		calls: map[string][]stored{
			"s1": {{"call_0", []string{"canceled"}}, {"call_1", []string{"succeeded"}}}, "s2": {{id: "call_2"}},
			"b1-0": {{"call_b0", []string{"unknown", "succeeded"}}}, "b1-1": {{"call_b1", []string{"failed"}}},
		},
		open: map[string]int{"batch_1": 1},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(kept{}, stored{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	open, err := r.keep(t.Context(), func(c *clientCall) bool { return c.Effect == "s2" })
	if err != nil || len(open.calls["s1"]) != 1 || open.calls["s1"][0].id != "call_0" || len(open.calls["s2"]) != 1 {
		t.Errorf("of some calls and all twins there are %v, %v", open.calls, err)
	}
	if n := got.waiting(); n != 2 {
		t.Errorf("%d calls have no result, not 2", n)
	}
}

func TestALogThatNamesNoCallOfTheLoadIsAnError(t *testing.T) {
	r := frontDoor(t, map[string]string{pathOfLog: `{"calls":[]}`, "/calls/call_1": `{"state":"succeeded"}`, pathOfBatches: `{"batches":[]}`})
	r.book.begin(&clientCall{Effect: "s1", ID: "call_1", digest: digestOf("one")})
	if _, err := r.keep(t.Context(), every); err == nil || !strings.Contains(err.Error(), "names none of 1 calls") {
		t.Errorf("the error is %v", err)
	}
}

func TestCallIsAcceptedOnlyIfTheResponseSaysSo(t *testing.T) {
	const problem = `{"type":"/problems/%s","call_id":"call_1"}`
	for _, c := range []struct {
		name   string
		status int
		header http.Header
		body   string
		id     string
		state  string
	}{
		{"a result", 200, http.Header{"Callyard-Call-Id": {"call_1"}}, "", "call_1", "succeeded"},
		{"stored", 202, http.Header{"Callyard-Call-Id": {"call_1"}}, "", "call_1", "failed"},
		{"under way", 409, nil, fmt.Sprintf(problem, "conflict"), "call_1", ""},
		{"another request with its key", 409, nil, fmt.Sprintf(problem, "idempotency-key-reused"), "", ""},
		{"refused before it was stored", 503, http.Header{"Retry-After": {"0"}}, fmt.Sprintf(problem, "unavailable"), "", ""},
		{"an end that is not known to be stored", 504, nil, fmt.Sprintf(problem, "outcome-unknown"), "", ""},
		{"an end that is", 504, http.Header{"Idempotency-Replayed": {"true"}}, fmt.Sprintf(problem, "outcome-unknown"), "call_1", "failed"},
	} {
		r := frontDoor(t, map[string]string{"/calls/call_1?wait=5": `{"state":"failed"}`})
		client := newClient(r.f, 0)
		call := &clientCall{Effect: "s1"}
		if c.header == nil {
			c.header = http.Header{}
		}
		state, _ := r.read(t.Context(), client, call, answer{c.status, c.header, []byte(c.body)})
		client.close()
		if call.ID != c.id || state != c.state {
			t.Errorf("%s: accepted as %q with state %q, not as %q with %q", c.name, call.ID, state, c.id, c.state)
		}
	}
}

package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// stored returns every message of every stream in NATS, byte for byte.
func (f *fabric) stored() map[string]string {
	f.t.Helper()
	js := bustest.JetStream(f.t, f.nats)
	all := make(map[string]string)
	streams := js.ListStreams(f.t.Context())
	for info := range streams.Info() {
		s, err := js.Stream(f.t.Context(), info.Config.Name)
		if err != nil {
			f.t.Fatal(err)
		}
		all[info.Config.Name] = fmt.Sprintf("%d messages, the last is %d", info.State.Msgs, info.State.LastSeq)
		for seq := info.State.FirstSeq; seq <= info.State.LastSeq && info.State.Msgs > 0; seq++ {
			m, err := s.GetMsg(f.t.Context(), seq)
			if err != nil {
				f.t.Fatal(err)
			}
			all[fmt.Sprintf("%s %d", info.Config.Name, seq)] = fmt.Sprintf("%s %v %v %s", m.Subject, m.Time, m.Header, schema.Digest(m.Data))
		}
	}
	if err := streams.Err(); err != nil {
		f.t.Fatal(err)
	}
	return all
}

func TestGetRequestsDoNotChangeTheLedger(t *testing.T) {
	c := openSignInFabric(t, people(), nil)
	type held struct {
		id     schema.ApprovalID
		digest string
	}
	var waiting []held
	for i := range 50 {
		a := c.hold(fmt.Sprintf(`{"target":"x%d"}`, i), requester(), nil)
		waiting = append(waiting, held{a.ID, a.Binding.ArgumentsDigest})
	}
	b := c.signedIn("ada")
	cookie := b.Jar.Cookies(mustURL(t, c.url))[0]
	before := c.stored()
	if len(before) < 50 {
		t.Fatalf("only %d messages were found", len(before))
	}
	// fill replaces the parameters of a route with existing IDs.
	fill := func(path string, a held) (paths []string) {
		paths = []string{strings.NewReplacer("{$}", "", "{id}", string(a.id)).Replace(path)}
		for name, values := range map[string][]string{"{kind}": {"approve", "deny", "edit", "extend", "revoke", "nope"}, "{file}": {"page.js", "approver.css", "ui.css", "nope"}} {
			if strings.Contains(path, name) {
				head, tail, _ := strings.Cut(paths[0], name)
				paths = nil
				for _, v := range values {
					paths = append(paths, head+v+tail)
				}
			}
		}
		return paths
	}
	looks := make(map[string]int)
	for _, route := range c.web.AllRoutes() {
		_, path, _ := strings.Cut(route, " ")
		each := waiting[:1]
		if strings.Contains(path, "{id}") || path == "/review" {
			each = waiting
		}
		for _, a := range each {
			for _, p := range fill(path, a) {
				if strings.Contains(p, "{") {
					t.Fatalf("the test does not know what to put into %s", route)
				}
				said := url.Values{
					"kind": {"approve"}, "digest": {a.digest}, "reason": {"x"}, "confirm": {"true"}, "id": {string(a.id)}, "pick." + string(a.id): {a.digest},
					"token": {c.web.FormToken(cookie.Name+"="+cookie.Value, p)}, "decisions": {`[{"id":"` + string(a.id) + `","kind":"approve"}]`},
				}.Encode()
				for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions} {
					for _, query := range []string{"", "?" + said, "?id=" + string(a.id)} {
						if p == "/events" && method == http.MethodGet {
							continue // an endless stream; tested below
						}
						if got := c.do(b, method, p+query, "", "Authorization", "Bearer "+c.keys["ada"]); got.status >= http.StatusInternalServerError {
							t.Errorf("%s %s%s: %d", method, p, query, got.status)
						}
						looks[route]++
					}
				}
			}
		}
	}
	resp, err := b.Get(c.url + "/events")
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(before, c.stored()); diff != "" {
		t.Errorf("something has changed:\n%s", diff)
	}
	for _, route := range []string{"POST /a/{id}/{kind}", "GET /a/{id}", "POST /approvals/{id}/decisions", "GET /review"} {
		if looks[route] < 50*3*3 {
			t.Errorf("%s was looked at %d times", route, looks[route])
		}
	}
	if slices.Contains(c.web.AllRoutes(), "/") {
		t.Error("a route without a method takes every method")
	}
}

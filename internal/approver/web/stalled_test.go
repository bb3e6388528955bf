package web_test

import (
	"io"
	"net/http"
	"net/url"
	"sync"
	"testing"

	"github.com/callyard/callyard/internal/kit/polltest"
)

// Requests that anybody can send and not complete must not keep people from deciding.
func TestVisitorsDoNotUseTheMemoryForDecisions(t *testing.T) {
	f := open(t, people(), nil)
	a := f.hold(`{"target":"x"}`, requester(), nil)
	c := f.signedIn("ada")
	token := formToken(t, f.do(c, "GET", "/a/"+string(a.ID), "").body, "/sign-out")
	const first = 4 << 10 // what a body takes before it arrives
	f.web.SetBodyMemory(16*first, 1<<20)
	body, never := io.Pipe()
	visitor := f.browser()
	var stalled sync.WaitGroup
	defer stalled.Wait()
	defer never.Close()
	for range 12 {
		stalled.Go(func() {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/sign-in", body)
			if err != nil {
				t.Error(err)
				return
			}
			r.ContentLength = 64 << 10
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			if resp, err := visitor.Do(r); err == nil {
				_ = resp.Body.Close()
			}
		})
	}
	polltest.Until(t, "the visitors have their part", func() bool { return f.web.FreeBodyMemory() == 4*first })
	if got := f.post(f.browser(), "/sign-in", url.Values{"key": {"x"}}); got.status != http.StatusServiceUnavailable {
		t.Errorf("another visitor: %d %s", got.status, got.body)
	}
	if got := f.api("bob", "POST", "/approvals/"+string(a.ID)+"/decisions", decision("approve", a.Binding.ArgumentsDigest, "")); got.status != http.StatusOK {
		t.Errorf("a decision with a key: %d %s", got.status, got.body)
	}
	if got := f.post(c, "/sign-out", url.Values{"token": {token}}); got.status != http.StatusSeeOther {
		t.Errorf("a form of a person who signed in: %d %s", got.status, got.body)
	}
}

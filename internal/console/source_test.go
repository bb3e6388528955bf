package console_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/console"
)

func TestCachedAnswerServesWaitersAndExpires(t *testing.T) {
	now, asked := time.Unix(1_800_000_000, 0), 0
	c := console.NewCache(func() time.Time { return now })
	ask := func() {
		asked++
		now = now.Add(2 * time.Second) // the front door is slow
	}
	c.Ask("a", ask)
	if c.Ask("a", ask); asked != 1 {
		t.Errorf("it was asked %d times", asked)
	}
	now = now.Add(time.Second)
	if c.Ask("b", ask); c.Len() != 1 {
		t.Errorf("%d answers are kept", c.Len())
	}
	if c.Ask("a", ask); asked != 3 {
		t.Errorf("it was asked %d times", asked)
	}
}

func TestKeyIsNotSentToRedirectTargets(t *testing.T) {
	followed := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed = true }))
	defer other.Close()
	first := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusPermanentRedirect))
	defer first.Close()
	d := openDoor(t, nil)
	d.url = first.URL
	k := openDesk(t, d, nil)
	k.key = "secret"
	for _, path := range []string{"/console/servers", "/console/batch/results?id=batch_1"} {
		p := k.get(path)
		if p.status != http.StatusServiceUnavailable {
			t.Errorf("%s: %d", path, p.status)
		}
		p.has(t, "The front door redirects to another address; set approver.console.front_door to that address.")
	}
	if followed {
		t.Error("the redirect was followed")
	}
}

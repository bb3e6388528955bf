package web_test

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/approver/web"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/pkg/schema"
)

// events opens the stream of changes and returns its lines. They end after a minute at the latest.
func (f *fabric) events(c *http.Client) *bufio.Scanner {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	f.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url+"/events", http.NoBody)
	if err != nil {
		f.t.Fatal(err)
	}
	resp, err := c.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = resp.Body.Close() })
	return bufio.NewScanner(resp.Body)
}

// Without NATS, the lists come from this process's copy.
func TestListsSayThatDecisionsCannotBeRecorded(t *testing.T) {
	var away atomic.Bool
	f := open(t, people(), func(o *web.Options) {
		o.Ready = func() error {
			if away.Load() {
				return errors.New("NATS is RECONNECTING")
			}
			return nil
		}
	})
	f.web.SetHeartbeat(10 * time.Millisecond)
	c := f.signedIn("ada")
	lines := f.events(c)
	for _, is := range []bool{false, true, false} {
		changes := is != away.Swap(is)
		for changes && lines.Scan() && lines.Text() != "event: changed" {
		}
		if err := lines.Err(); err != nil {
			t.Fatal("no change was told: ", err)
		}
		for _, path := range []string{"/", "/history"} {
			got := f.do(c, "GET", path, "")
			if says := strings.Contains(got.body, "this list may be out of date: NATS is RECONNECTING."); got.status != http.StatusOK || says != is {
				t.Errorf("%s, away: %v: %d %s", path, is, got.status, got.body)
			}
		}
	}
	f.web.Close() // ends the stream, so that the server can stop
}

func TestPagesAreNotToldOfChangesOfAnotherTenant(t *testing.T) {
	f := open(t, []authn.Key{{Name: "rita", Groups: []string{"ops"}, Tenant: "red"}, {Name: "bo", Groups: []string{"ops"}, Tenant: "blue"}}, nil)
	told := func(lines *bufio.Scanner) bool {
		for lines.Scan() {
			if lines.Text() == "event: changed" {
				return true
			}
		}
		return false
	}
	red, blue := f.events(f.signedIn("rita")), f.events(f.signedIn("bo"))
	red.Scan()
	blue.Scan() // both streams are open
	f.hold(`{"target":"x"}`, schema.Principal{Name: "agent", Tenant: "red"}, nil)
	if !told(red) {
		t.Fatal("no change was told: ", red.Err())
	}
	f.hold(`{"target":"x"}`, schema.Principal{Name: "other", Tenant: "blue"}, nil)
	if !told(blue) {
		t.Fatal("no change was told: ", blue.Err())
	}
	// An event about the call of the other tenant would have come before or soon after that one.
	f.hold(`{"target":"y"}`, schema.Principal{Name: "agent", Tenant: "red"}, nil)
	if !told(red) {
		t.Fatal("no change was told: ", red.Err())
	}
	f.web.Close() // ends the streams
	if told(blue) {
		t.Error("a person is told when another tenant requests a call")
	}
}

func TestOnePersonCannotUseAllLiveUpdates(t *testing.T) {
	f := open(t, people(), nil)
	ada := f.signedIn("ada")
	refused := 0
	for range 60 {
		lines := f.events(ada)
		if lines.Scan(); !strings.HasPrefix(lines.Text(), "retry:") {
			refused++
		}
	}
	if refused != 10 {
		t.Errorf("%d of 60 streams of one person are refused", refused)
	}
	if lines := f.events(f.signedIn("bob")); !lines.Scan() || !strings.HasPrefix(lines.Text(), "retry:") {
		t.Errorf("another person is refused: %s", lines.Text())
	}
	f.web.Close() // ends the streams, so that the server can stop
}

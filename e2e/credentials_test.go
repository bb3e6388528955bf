package e2e

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// digest makes a call as a person, and returns the digest of the credential that the server saw, or
// the body of an error response.
func (d *door) digest(t testing.TB, owner string) (digest string, status int) {
	t.Helper()
	a, err := d.tryCall("crm", "digest", `{}`, "X-API-Key: key of "+owner)
	if err != nil {
		t.Error(err)
		return "", 0
	}
	if a.status != http.StatusOK {
		return string(a.body), a.status
	}
	return text(t, a.body), a.status
}

// TestNoCallHasTheTokenOfAnotherPerson has people with separate grants call through three front
// doors concurrently, before and after all tokens expire at the same moment. The full size, with
// 200 people and 50 calls through each front door, runs with CALLYARD_CREDENTIALS=full.
func TestNoCallHasTheTokenOfAnotherPerson(t *testing.T) {
	count, each := 24, 3
	if os.Getenv("CALLYARD_CREDENTIALS") == "full" {
		count, each = 200, 50
	}
	p := openPeople(t, "canary-of-the-client")
	owners := make([]string, count)
	for i := range owners {
		owners[i] = fmt.Sprintf("person%d", i)
	}
	var doors []*door
	for range 3 {
		doors = append(doors, startFrontDoor(t, setup{nats: p.nats.url, config: ownersKeys(owners) + p.section}))
	}
	file := serversFile(t, nil)
	write(t, file, fmt.Sprintf(`{"mcpServers": {"crm": {"url": %q, "auth": {"mode": "user"}}}}`, p.crm.URL+"/mcp"))
	startWorker(t, setup{nats: p.nats.url, servers: file})
	for _, d := range doors {
		d.eventually(t, startWithin, "the server crm", func() error {
			if a, err := d.try("GET", "/servers/crm/tools", "", "X-API-Key: key of person0"); err != nil || a.status != http.StatusOK {
				return fmt.Errorf("%d %s, %v", a.status, a.body, err)
			}
			return nil
		})
	}
	if digest, status := doors[0].digest(t, owners[0]); status != http.StatusConflict {
		t.Fatalf("before connecting: %d %s", status, digest)
	}
	for _, o := range owners {
		p.connect(t, o)
	}

	var calls, foreign atomic.Int64
	whose := sync.Map{} // owners by digest
	round := func(n int) time.Duration {
		began := time.Now()
		var all sync.WaitGroup
		for _, d := range doors {
			for _, o := range owners {
				all.Go(func() {
					for range n {
						digest, status := d.digest(t, o)
						calls.Add(1)
						if status != http.StatusOK {
							t.Errorf("%s: %d %s", o, status, digest)
							return
						}
						if first, known := whose.LoadOrStore(digest, o); known && first != o {
							foreign.Add(1)
						}
					}
				})
			}
		}
		all.Wait()
		return time.Since(began)
	}
	took := round(each)
	issued := p.as.Issued()
	p.as.RevokeAll()
	renewing := round(1)
	redeemed := p.as.Issued() - issued
	t.Logf("%d calls of %d people through %d front doors in %v: %d with the token of another; %d grants redeemed in %v", calls.Load(), count, len(doors), took.Round(time.Millisecond), foreign.Load(), redeemed, renewing.Round(time.Millisecond))
	if foreign.Load() != 0 || redeemed != count {
		t.Errorf("%d calls had the token of another person; %d redemptions for %d people", foreign.Load(), redeemed, count)
	}
	p.disconnectedEverywhere(t, doors, owners[0])
}

// disconnectedEverywhere disconnects a person, and checks that no front door uses the grant any longer,
// although its token is valid for an hour.
func (p *personalFabric) disconnectedEverywhere(t *testing.T, doors []*door, owner string) {
	t.Helper()
	if err := p.book.Disconnect(t.Context(), "crm", personOf(owner)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var slowest time.Duration
	for _, d := range doors {
		eventually(t, soon, "the end of the grant", func() error {
			body, status := d.digest(t, owner)
			if status != http.StatusConflict {
				return fmt.Errorf("%d %s", status, body)
			}
			if !strings.Contains(body, "http://127.0.0.1:9/connect?server=crm") {
				t.Errorf("the answer has no address to connect at: %s", body)
			}
			return nil
		})
		slowest = max(slowest, time.Since(began))
	}
	t.Logf("disconnecting was seen by %d front doors within %v", len(doors), slowest.Round(time.Millisecond))
}

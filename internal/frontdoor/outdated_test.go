package frontdoor_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/authn/token/tokentest"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// After a leak, a key gets a new secret with --grace 0s. Whoever holds the old one must not read on.
func TestAllStreamsEndWhenTheirSecretEnds(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	d := openDoor(t, srv, frontdoor.Options{})
	k := d.newKey(d.key, `{"name":"reader","scopes":["tools:read","tools:call","calls:read"]}`)
	rotate := func(grace string) string {
		t.Helper()
		status, _, answer := d.with(d.key, "POST", "/keys/"+k.ID+"/rotate", `{"grace_seconds":`+grace+`}`, "If-Match", "*")
		_, secret, _ := strings.Cut(answer, `"secret":"`)
		secret, _, _ = strings.Cut(secret, `"`)
		if status != http.StatusOK || secret == "" {
			t.Fatal(status, answer)
		}
		return secret
	}
	former := d.allStreams(k.Secret, nil)
	second := rotate("600")
	current := d.allStreams(second, nil)
	begun := time.Now()
	third := rotate("0")
	endSoon(t, former, begun) // they continued until the grace of their secret ended
	endSoon(t, current, begun)
	d.allStreams(third, nil)
}

func TestStreamsEndWhenTheirKeyIsNarrowed(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	d := openDoor(t, srv, frontdoor.Options{})
	k := d.newKey(d.key, `{"name":"reader","scopes":["tools:read","tools:call","calls:read"]}`)
	change := func(body string) {
		t.Helper()
		if status, _, answer := d.with(d.key, "PATCH", "/keys/"+k.ID, body, "If-Match", "*"); status != http.StatusOK {
			t.Fatal(status, answer)
		}
	}
	streams := d.allStreams(k.Secret, nil)
	change(`{"note":"ends no stream"}`)
	change(`{"scopes":["tools:read","tools:call","calls:read","admin:tenant"]}`)
	begun := time.Now()
	change(`{"scopes":["tools:call:other"]}`)
	endSoon(t, streams, begun)
}

// The lines of a batch can be sent for hours.
func TestNoMoreLinesAreStoredOnceTheirKeyIsRevoked(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	d := openDoor(t, srv, frontdoor.Options{})
	k := d.newKey(d.key, `{"name":"sender","scopes":["tools:call","calls:read"]}`)
	body, lines := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), "POST", d.base+"/batches", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+k.Secret)
	r.Header.Set("Content-Type", "application/x-ndjson")
	answered := make(chan int, 1)
	go func() {
		resp, err := d.http.Do(r)
		if err != nil {
			t.Error(err)
			answered <- 0
			return
		}
		resp.Body.Close()
		answered <- resp.StatusCode
	}()
	send := func() error {
		_, err := io.WriteString(lines, `{"server":"s","tool":"read","arguments":{}}`+"\n")
		return err
	}
	if err := send(); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "the batch", func() bool { // its request is accepted before the key is revoked
		_, _, answer := d.with(k.Secret, "GET", "/batches", "")
		return strings.Contains(answer, `"id"`)
	})
	if status, _, answer := d.with(d.key, "DELETE", "/keys/"+k.ID, "", "If-Match", "*"); status != http.StatusOK {
		t.Fatal(status, answer)
	}
	every, deadline := time.NewTicker(50*time.Millisecond), time.After(time.Minute)
	defer every.Stop()
	defer lines.Close()
	for {
		select {
		case status := <-answered:
			if status != http.StatusUnauthorized {
				t.Errorf("the answer is %d", status)
			}
			return
		case <-every.C:
			_ = send() // it fails once the front door has answered
		case <-deadline:
			t.Fatal("lines of a revoked key are stored")
		}
	}
}

func TestStreamsEndWhenTheirTokenExpires(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	is := tokentest.Start(t)
	d := openDoor(t, srv, frontdoor.Options{Config: settings.FrontDoor{PublicURL: publicURL, Issuers: []settings.Issuer{is.Entry("idp")}}})
	// Clocks may differ by 30 seconds, so the token is valid for 10 more.
	claims := tokentest.Claims{"scope": "tools:read tools:call calls:read", "exp": time.Now().Add(-20 * time.Second).Unix(), "iat": time.Now().Add(-time.Minute).Unix()}
	as := func(path string) string { return is.Key().Sign(t, is.Claims("ann", publicURL+path, claims), nil) }
	for what, over := range d.allStreams(as("/mcp/s"), func() string { return as("") }) {
		select {
		case <-over:
		case <-time.After(time.Minute):
			t.Errorf("%s continues", what)
		}
	}
}

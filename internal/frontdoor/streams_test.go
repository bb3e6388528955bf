package frontdoor_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/authn/token/tokentest"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/endtable"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// follow starts a request whose answer is a stream. The channel receives the time of its end.
func (d *door) follow(method, path, credential, body string, header ...string) (ended <-chan time.Time) {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), method, d.base+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+credential)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := d.http.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		d.t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, text)
	}
	over := make(chan time.Time, 1)
	go func() {
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body) // until the front door ends it
		over <- time.Now()
	}()
	return over
}

// allStreams opens one long-lived stream of each kind, by description.
func (d *door) allStreams(credential string, ofREST func() string) map[string]<-chan time.Time {
	d.t.Helper()
	rest := credential
	if ofREST != nil {
		rest = ofREST()
	}
	status, h, text := d.mcp(credential, "/mcp/s", initialize)
	if status != http.StatusOK {
		d.t.Fatalf("%d %s", status, text)
	}
	status, _, text = d.with(rest, "POST", "/batches", `{"open":true}`)
	var b struct{ ID string }
	if json.Unmarshal([]byte(text), &b) != nil || b.ID == "" {
		d.t.Fatalf("%d %s", status, text)
	}
	listen := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},"notifications":{"toolsListChanged":true}}}`
	return map[string]<-chan time.Time{
		"GET /events":                     d.follow("GET", "/events", rest, ""),
		"GET /batches/{id}/events":        d.follow("GET", "/batches/"+b.ID+"/events", rest, ""),
		"GET /batches/{id}/results":       d.follow("GET", "/batches/"+b.ID+"/results?follow=true", rest, "", "Accept", "application/x-ndjson"),
		"the GET stream of a session":     d.follow("GET", "/mcp/s", credential, "", "Mcp-Session-Id", h.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", "2025-11-25", "Accept", "text/event-stream"),
		"subscriptions/listen of clients": d.follow("POST", "/mcp/s", credential, listen, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen"),
	}
}

// endSoon checks that streams end after an action, and logs the time.
func endSoon(t *testing.T, streams map[string]<-chan time.Time, begun time.Time) {
	t.Helper()
	for what, over := range streams {
		select {
		case at := <-over:
			t.Logf("%s ended after %s", what, at.Sub(begun).Round(time.Millisecond))
			if at.Before(begun) {
				t.Errorf("%s ended before the credential did", what)
			}
		case <-time.After(10 * time.Second): // before the heartbeat that would end some of them
			t.Errorf("%s continues", what)
		}
	}
}

func TestAllStreamsEndWhenTheirGrantEnds(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	is := tokentest.Start(t)
	d := openDoor(t, srv, frontdoor.Options{Config: settings.FrontDoor{PublicURL: publicURL, Issuers: []settings.Issuer{is.Entry("idp")}}})
	as := func(grant, path string) string {
		return is.Key().Sign(t, is.Claims("ann", publicURL+path, tokentest.Claims{"scope": "tools:read tools:call calls:read", scope.GrantClaim: grant, scope.OwnerClaim: "ann"}), nil)
	}
	open := func(grant string) map[string]<-chan time.Time {
		return d.allStreams(as(grant, "/mcp/s"), func() string { return as(grant, "") })
	}
	ended, kept := open("a1"), open("b2")
	rows, err := endtable.OpenBucket(t.Context(), srv.Connect(t, "approver"))
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	row, err := json.Marshal(endtable.End{Grant: "a1", At: begun})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rows.Put(t.Context(), "a1", row); err != nil {
		t.Fatal(err)
	}
	endSoon(t, ended, begun)
	for what, over := range kept { // of the same person with another program
		select {
		case <-over:
			t.Errorf("%s of another access has ended", what)
		default:
		}
	}
}

func TestAllStreamsEndWhenTheirKeyIsRevoked(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	d := openDoor(t, srv, frontdoor.Options{})
	k := d.newKey(d.key, `{"name":"reader","scopes":["tools:read","tools:call","calls:read"]}`)
	streams := d.allStreams(k.Secret, nil)
	begun := time.Now()
	if status, _, answer := d.with(d.key, "DELETE", "/keys/"+k.ID, "", "If-Match", "*"); status != http.StatusOK {
		t.Fatal(status, answer)
	}
	endSoon(t, streams, begun)
}

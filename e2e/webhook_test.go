package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/callyard/callyard/internal/mcptest"
)

// told is a received webhook.
type told struct {
	id   string
	Type string `json:"type"`
	Data struct {
		ID     string          `json:"id"`
		State  string          `json:"state"`
		Result json.RawMessage `json:"result"`
	} `json:"data"`
}

// startReceiver starts a receiver of webhooks whose first responses are errors.
func startReceiver(t *testing.T, secret func() string, refuse int) (address string, got chan told) {
	t.Helper()
	got = make(chan told, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		hook, err := standard.NewWebhook(secret())
		if err != nil {
			t.Error(err)
			return
		}
		if err := hook.Verify(body, r.Header); err != nil {
			t.Errorf("the signature: %v", err)
		}
		if refuse > 0 {
			refuse--
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		m := told{id: r.Header.Get("webhook-id")}
		decode(t, body, &m)
		got <- m
	}))
	t.Cleanup(s.Close)
	return s.URL, got
}

func TestEndOfCallAndBatchIsSentToCallback(t *testing.T) {
	data := t.TempDir()
	secret := func() string {
		text, err := os.ReadFile(filepath.Join(data, "webhooks.secret"))
		if err != nil {
			t.Error(err)
		}
		return strings.TrimSpace(string(text))
	}
	address, got := startReceiver(t, secret, 1)
	host, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	effects := filepath.Join(t.TempDir(), "effects")
	d := startUp(t, setup{
		data: data, servers: serversFile(t, map[string]entry{"books": scripted(mcptest.Echo), "pay": risky(2, scripted(mcptest.Echo))}),
		config: "webhooks:\n  allowed_hosts: [\"" + host.Host + "\"]\n",
	})
	d.waitServers(t, 1, "books", "pay")
	next := func(what string) told {
		t.Helper()
		select {
		case m := <-got:
			return m
		case <-time.After(30 * time.Second):
			t.Fatalf("no webhook tells of %s", what)
		}
		return told{}
	}
	a := d.ask(t, "POST", "/calls", fmt.Sprintf(`{"server":"books","tool":"effect","arguments":{"path":%q,"id":"a"},"callback_url":%q}`, effects, address+"/hook"))
	if a.status != http.StatusOK {
		t.Fatalf("the call: %d %s", a.status, a.body)
	}
	if m := next("the call"); m.Type != "call.succeeded" || m.Data.ID != a.header.Get("Callyard-Call-Id") || m.id != m.Data.ID || len(m.Data.Result) == 0 {
		t.Errorf("told of the call: %+v", m)
	}
	b := d.ask(t, "POST", "/batches?callback_url="+url.QueryEscape(address+"/hook"), effectLines("books", effects, 0, 20, 0), ndjsonType)
	var s batchState
	decode(t, b.body, &s)
	if m := next("the batch"); m.Type != "batch.ended" || m.Data.ID != s.ID || m.Data.State != "completed" {
		t.Errorf("told of the batch: %+v", m)
	}
	held := d.ask(t, "POST", "/calls", fmt.Sprintf(`{"server":"pay","tool":"effect","arguments":{"path":%q,"id":"held"},"callback_url":%q}`, effects, address+"/hook"))
	var h heldAnswer
	decode(t, held.body, &h)
	if a := d.confirm(t, h.ID, "false"); a.status != http.StatusOK {
		t.Fatalf("rejected: %d %s", a.status, a.body)
	}
	if m := next("the held call"); m.Type != "call.denied" || m.Data.ID != h.CallID {
		t.Errorf("told of the held call: %+v", m)
	}
	for _, bad := range []string{"http://169.254.169.254/latest", "http://10.0.0.1/", "ftp://example.com/", "https://user:pw@example.com/", "http://127.0.0.1:1/"} {
		d.ask(t, "POST", "/calls", fmt.Sprintf(`{"server":"books","tool":"effect","arguments":{"path":%q,"id":"bad"},"callback_url":%q}`, effects, bad)).problem(t, http.StatusBadRequest, "invalid-request")
	}
}

type heldAnswer = held

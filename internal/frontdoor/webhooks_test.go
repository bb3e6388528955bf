package frontdoor_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// TestWebhookIsSentAfterItsOutboxWasUnavailable lets NATS refuse deliveries while a call ends, as when it
// restarts. Nothing else would send the webhook.
func TestWebhookIsSentAfterItsOutboxWasUnavailable(t *testing.T) {
	srv := bustest.Start(t)
	h := startCountingWorker(t, srv)
	t.Cleanup(h.let)
	got := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Get("webhook-id") }))
	t.Cleanup(receiver.Close)
	d := openDoor(t, srv, frontdoor.Options{Webhooks: webhooksTo(t, receiver)})
	js := bustest.JetStream(t, srv.URL)
	stream, err := js.Stream(t.Context(), bus.StreamDeliveries)
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	full := config
	full.MaxBytes = 1
	if _, err := js.UpdateStream(t.Context(), full); err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	attempts := make(chan *nats.Msg, 100)
	if _, err := nc.ChanSubscribe(bus.SubjectDelivery+"*"+bus.SuffixBody, attempts); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	status, header, answer := d.do("POST", "/calls", `{"server":"s","tool":"write","arguments":{},"callback_url":"`+receiver.URL+`/hook"}`, "Prefer", "respond-async")
	if status != http.StatusAccepted {
		t.Fatalf("%d %s", status, answer)
	}
	polltest.Until(t, "a second attempt to store the webhook", func() bool { return len(attempts) > 1 })
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if id := <-got; id != strings.TrimPrefix(header.Get("Location"), "/calls/") {
		t.Errorf("the webhook of %s was sent", id)
	}
}

// webhooksTo returns settings that allow webhooks to the receiver.
func webhooksTo(t *testing.T, receiver *httptest.Server) settings.Webhooks {
	t.Helper()
	secrets := filepath.Join(t.TempDir(), "secrets")
	if err := os.WriteFile(secrets, []byte("whsec_"+base64.StdEncoding.EncodeToString(make([]byte, 32))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return settings.Webhooks{SecretsFile: secrets, AllowedHosts: []string{strings.TrimPrefix(receiver.URL, "http://")}}
}

// TestWebhooksOfAllAcceptedCallsAreSent ends more calls at once than may wait for one receiver.
func TestWebhooksOfAllAcceptedCallsAreSent(t *testing.T) {
	srv := bustest.Start(t)
	h := startCountingWorker(t, srv)
	t.Cleanup(h.let)
	var mu sync.Mutex
	got, held := map[string]bool{}, make(chan bool)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-held
		mu.Lock()
		defer mu.Unlock()
		got[r.Header.Get("webhook-id")] = true
	}))
	t.Cleanup(receiver.Close)
	d := openDoor(t, srv, frontdoor.Options{Webhooks: webhooksTo(t, receiver)})
	const calls = 1010 // 1000 may wait
	var ids []string
	for range calls {
		status, header, answer := d.do("POST", "/calls", `{"server":"s","tool":"slow","arguments":{},"callback_url":"`+receiver.URL+`/hook"}`, "Prefer", "respond-async")
		if status != http.StatusAccepted {
			t.Fatalf("%d %s", status, answer)
		}
		ids = append(ids, strings.TrimPrefix(header.Get("Location"), "/calls/"))
	}
	h.let()
	polltest.Until(t, "the end of all calls", func() bool { return h.runs.Load() == calls })
	polltest.Until(t, "a full queue", func() bool {
		status, _, _ := d.do("POST", "/calls", `{"server":"s","tool":"read","arguments":{},"callback_url":"`+receiver.URL+`/hook"}`)
		return status == http.StatusTooManyRequests
	})
	close(held)
	polltest.Until(t, "the webhooks of all calls", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return !slices.ContainsFunc(ids, func(id string) bool { return !got[id] })
	})
}

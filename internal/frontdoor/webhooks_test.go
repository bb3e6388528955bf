package frontdoor_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
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
	secrets := filepath.Join(t.TempDir(), "secrets")
	if err := os.WriteFile(secrets, []byte("whsec_"+base64.StdEncoding.EncodeToString(make([]byte, 32))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := openDoor(t, srv, frontdoor.Options{Webhooks: settings.Webhooks{SecretsFile: secrets, AllowedHosts: []string{strings.TrimPrefix(receiver.URL, "http://")}}})
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

package webhook

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/callyard/callyard/pkg/schema"
)

func TestEverySecretSignsAndAnIndependentLibraryAgrees(t *testing.T) {
	srv, requests := serve(t, status(204))
	c := newCounter()
	o := local(newMemory())
	o.Secrets, o.Count = []string{secretA, secretB}, c.count
	s := start(t, o)
	send(t, s, "msg_1", srv.URL)
	c.wait(t, Delivered)
	r := within(t, "the request", requests)
	for _, secret := range o.Secrets {
		verifier, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := verifier.Verify(r.body, r.header); err != nil {
			t.Errorf("the library refuses: %v", err)
		}
		if err := verifier.Verify(append(bytes.Clone(r.body), ' '), r.header); err == nil {
			t.Error("another body has the same signature")
		}
		for _, name := range []string{headerID, headerTimestamp} {
			h := r.header.Clone()
			h.Set(name, h.Get(name)+"1")
			if err := verifier.VerifyIgnoringTimestamp(r.body, h); err == nil {
				t.Errorf("another %s has the same signature", name)
			}
		}
	}
	stranger, err := standardwebhooks.NewWebhook("whsec_" + strings.Repeat("QUJD", 8))
	if err != nil {
		t.Fatal(err)
	}
	if stranger.Verify(r.body, r.header) == nil {
		t.Error("a secret that is not ours verifies")
	}
}

func TestRequestMatchesTheGoldenFile(t *testing.T) {
	signer, fault := newSigner([]string{secretA, secretB})
	if fault != nil {
		t.Fatal(fault)
	}
	view := []byte(`{"id":"call_1","state":"succeeded","n":12345678901234567890}`)
	at := time.Date(2026, 3, 1, 12, 0, 0, 250_000_000, time.FixedZone("", 3600))
	var dump []byte
	for _, e := range []Event{
		CallEvent(CallEnd{State: "succeeded", Time: at, View: view, Result: []byte(`{"content":[{"type":"text","text":"<ä>"}]}`), ResultURL: "https://fabric.example/calls/call_1"}),
		CallEvent(CallEnd{State: "succeeded", Time: at, View: view, Result: bytes.Repeat([]byte(" "), maxResult+1), ResultURL: "https://fabric.example/calls/call_1"}),
		CallEvent(CallEnd{State: "denied", Time: at, View: view}),
		CallEvent(CallEnd{State: "failed", Time: at, View: []byte("{ }"), Result: []byte("null")}),
	} {
		body, fault := e.encode()
		if fault != nil {
			t.Fatal(fault)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://hooks.example.com/x", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		signer.sign(req.Header, "msg_1", at, body)
		one, err := httputil.DumpRequest(req, true)
		if err != nil {
			t.Fatal(err)
		}
		dump = fmt.Appendf(dump, "%s\n\n", bytes.ReplaceAll(one, []byte("\r\n"), []byte("\n")))
	}
	path := filepath.Join("testdata", "requests.golden")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, dump, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(dump)); diff != "" {
		t.Errorf("UPDATE_GOLDEN=1 writes the file anew (-golden +now):\n%s", diff)
	}
}

func TestInvalidSecretIsReportedWithoutItsValue(t *testing.T) {
	for _, secrets := range [][]string{nil, {""}, {"whsec_"}, {"whsec_!!!notbase64!!!"}, {"whsec_c2hvcnQ="}, {strings.TrimPrefix(secretA, "whsec_")}, {secretA, "whsec_hunter2"}, {"whsec_" + strings.Repeat("QUJD", 22)}} {
		_, err := Open(t.Context(), Options{Store: newMemory(), Secrets: secrets})
		if schema.KindOf(err) != schema.KindInvalidRequest {
			t.Fatalf("%q: %v", secrets, err)
		}
		for _, s := range secrets {
			if s = strings.TrimPrefix(s, "whsec_"); s != "" && strings.Contains(err.Error(), s) {
				t.Errorf("the error repeats the secret: %v", err)
			}
		}
	}
}

func TestInvalidEventsAreRefused(t *testing.T) {
	for _, e := range []Event{
		{Type: "", Data: []byte("{}")}, {Type: "Call", Data: []byte("{}")}, {Type: "a..b", Data: []byte("{}")}, {Type: ".a", Data: []byte("{}")}, {Type: "a\"", Data: []byte("{}")},
		{Type: "a.b"}, {Type: "a.b", Data: []byte("[]")}, {Type: "a.b", Data: []byte("{")}, {Type: "a.b", Data: []byte(`{"a":1}{}`)},
	} {
		if body, fault := e.encode(); fault == nil {
			t.Errorf("%s", body)
		}
	}
	_, fault := Event{Type: "a.b", Data: []byte(`{"a":"` + strings.Repeat("x", maxEvent) + `"}`)}.encode()
	if fault == nil || fault.Kind != schema.KindTooLarge {
		t.Errorf("%v", fault)
	}
}

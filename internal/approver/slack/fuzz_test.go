package slack

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"
	"unicode/utf8"

	api "github.com/slack-go/slack"

	"github.com/callyard/callyard/internal/store/ledger"
)

func FuzzRequestsWithoutSignatureAreRefused(f *testing.F) {
	now := time.Now().Unix()
	f.Add("v0=", int64(0), []byte("payload=x"))
	f.Add("v0=0000000000000000000000000000000000000000000000000000000000000000", int64(1), []byte(""))
	f.Add("v1=ff", int64(-99999), []byte("a=b"))
	f.Add("\x00", int64(1<<62), []byte{0xff})
	f.Fuzz(func(t *testing.T, signature string, off int64, body []byte) {
		h := http.Header{}
		h.Set(headerSignature, signature)
		h.Set(headerTimestamp, json.Number(time.Unix(now, 0).Add(time.Duration(off)).Format("20060102")).String())
		if verify(h, body, "a secret that nobody knows") == "" {
			t.Fatalf("%q is taken for a signature of %q", signature, body)
		}
	})
}

func FuzzInteractionIsAClickOrIgnored(f *testing.F) {
	for _, seed := range []string{
		`{"type":"block_actions","team":{"id":"T"},"user":{"id":"U"},"actions":[{"action_id":"approve","block_id":"b","type":"button","value":"appr_1.0123456789abcdef"}]}`,
		`{"type":"block_actions","actions":[{"type":"static_select","action_id":"deny","selected_option":{"value":"appr_1.00.other"}}]}`,
		`{"type":"view_submission","view":{"callback_id":"reason","private_metadata":"{\"ref\":\"appr_1.00\",\"kind\":\"deny\"}","state":{"values":{"reason":{"reason":{"value":"x"}}}}}}`,
		`{"type":"block_actions","actions":[null]}`, `{"type":"view_submission","view":{"state":null}}`, `{"actions":{}}`, `{"message":{"blocks":[{"type":"x"}]}}`, `null`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		var c api.InteractionCallback
		if json.Unmarshal(payload, &c) != nil {
			return
		}
		k, ok := parseClick(&c)
		if !ok {
			return
		}
		if _, is := parseReference(k.ref.String()); !is {
			t.Fatalf("%q is about %q", payload, k.ref)
		}
		if !k.show && k.kind != ledger.Approve && k.kind != ledger.Deny {
			t.Fatalf("%q decides %q", payload, k.kind)
		}
		if k.reason != "" && !utf8.ValidString(k.reason) {
			t.Fatalf("%q has the reason %q", payload, k.reason)
		}
	})
}

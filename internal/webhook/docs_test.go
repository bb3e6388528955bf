package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// verify returns nil for a request that Callyard has signed, that nobody has changed, and
// that is less than five minutes old.
func verify(secret string, h http.Header, body []byte, now time.Time) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return errors.New("the secret is not base64")
	}
	id, stamp := h.Get("webhook-id"), h.Get("webhook-timestamp")
	sent, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || now.Sub(time.Unix(sent, 0)).Abs() > 5*time.Minute {
		return errors.New("the timestamp is missing, or too far from the present time")
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + stamp + "."))
	mac.Write(body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for got := range strings.FieldsSeq(h.Get("webhook-signature")) {
		if hmac.Equal([]byte(got), []byte(want)) {
			return nil
		}
	}
	return errors.New("no signature matches")
}

// The function above is the one in docs/how-to/webhooks.md, and it works.
func TestDocumentedReceiverVerifiesSignatures(t *testing.T) {
	manual, err := os.ReadFile("../../docs/how-to/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(manual), "```go\n")
	code, _, found := strings.Cut(code, "```")
	source, err := os.ReadFile("docs_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if !found || !strings.Contains(string(source), code) {
		t.Error("the Go code of docs/how-to/webhooks.md is not what is tested here")
	}

	srv, requests := serve(t, status(204))
	c := newCounter()
	o := local(newMemory())
	o.Secrets, o.Count = []string{secretA, secretB}, c.count
	s := start(t, o)
	send(t, s, "msg_1", srv.URL)
	c.wait(t, Delivered)
	r := within(t, "the request", requests)
	now := time.Now()
	for _, secret := range o.Secrets {
		if err := verify(secret, r.header, r.body, now); err != nil {
			t.Error(err)
		}
	}
	if verify("whsec_"+strings.Repeat("QUJD", 8), r.header, r.body, now) == nil || verify(secretA, r.header, append(r.body, ' '), now) == nil || verify(secretA, r.header, r.body, now.Add(6*time.Minute)) == nil {
		t.Error("the manual's receiver takes what is forged or old")
	}
}

// What the manual says of limits and waits is what the code does.
func TestDocumentedLimitsMatchTheCode(t *testing.T) {
	manual, err := os.ReadFile("../../docs/how-to/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Store: newMemory()}
	if fault := o.fill(); fault != nil {
		t.Fatal(fault)
	}
	words := map[time.Duration]string{time.Hour: "1 h", 24 * time.Hour: "24 h", 6 * time.Hour: "6 h", time.Minute * 2: "2 min", time.Minute * 10: "10 min", 5 * time.Second: "5 s", 30 * time.Second: "30 s"}
	var waits []string
	for _, d := range o.Schedule {
		waits = append(waits, words[d])
	}
	last := len(waits) - 1
	for _, want := range []string{
		strings.Join(waits[:last], ", ") + " and " + waits[last],
		"within " + strconv.Itoa(int(o.Timeout.Seconds())) + " s", "another takes over after " + words[o.Lease],
		"at most " + strconv.Itoa(o.UnderWayEach) + " requests", "and " + strconv.Itoa(o.UnderWay) + " in all",
		"At most 1,000 deliveries (" + strconv.Itoa(int(o.WaitingBytesEach>>20)) + " MiB)", "10,000 (" + strconv.Itoa(int(o.WaitingBytes>>20)) + " MiB) in all",
		"over " + strconv.Itoa(maxResult>>10) + " KiB", "2,048 bytes",
	} {
		checkContains(t, string(manual), want)
	}
}

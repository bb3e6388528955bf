package submit

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
)

// DurableOptions holds the caller's wishes for storing a call and waiting for it.
type DurableOptions struct {
	preference
	Key         string // the Idempotency-Key, or "" if there is none
	Fingerprint string // of the request, if it has a key
	Callback    string
	// TellOutcome adds the member outcome to the result.
	TellOutcome bool
}

// durable reports whether the call must be stored before it runs.
func (w *DurableOptions) durable() bool {
	return w.preference.durable() || w.Key != "" || w.Callback != ""
}

// ReadDurableOptions reads the headers that make a call durable. Most calls have none. The fingerprint of the
// idempotency key is computed from body.
func ReadDurableOptions(r *http.Request, body []byte) (w DurableOptions, err error) {
	if headers := r.Header["Prefer"]; len(headers) > 0 {
		w.preference = preferred(headers)
	}
	if w.Key, err = httpapi.IdempotencyKey(r); err != nil {
		return w, err
	}
	if headers := r.Header[httpapi.HeaderCallback]; len(headers) > 0 {
		w.Callback = headers[0]
	}
	if w.Key != "" {
		w.Fingerprint = httpapi.Fingerprint(r, body)
	}
	return w, nil
}

// AtOnce reports whether the caller does not wait for the end of the call.
func (w *DurableOptions) AtOnce() bool { return w.async && !w.waits }

// Preferred reports whether the caller requested a stored call with Prefer.
func (w *DurableOptions) Preferred() bool { return w.preference.durable() }

// Wait returns the time that the caller waits for the end of a stored call. false means that it
// waits without limit.
func (w *DurableOptions) Wait() (time.Duration, bool) { return min(w.wait, MaxWait), w.waits }

// Applied returns the value of Preference-Applied for a stored call.
func (w *DurableOptions) Applied() string {
	if w.waits {
		return "wait=" + strconv.Itoa(int(w.wait/time.Second))
	}
	return "respond-async"
}

// preference is the caller's preference for the answer (RFC 7240).
type preference struct {
	// async requests an immediate answer with the URL of the call.
	async bool
	// waits requests that answer only after wait.
	waits bool
	wait  time.Duration
}

// durable reports whether the call must outlive this request.
func (p preference) durable() bool { return p.async || p.waits }

// preferred parses the Prefer headers. Unknown preferences are ignored: a preference is only a wish
// (RFC 7240 section 2). The first of two values applies.
func preferred(headers []string) (p preference) {
	for _, header := range headers {
		for part := range strings.SplitSeq(header, ",") {
			part, _, _ = strings.Cut(part, ";")
			name, value, _ := strings.Cut(part, "=")
			value = strings.Trim(strings.TrimSpace(value), `"`)
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "respond-async":
				p.async = true
			case "wait":
				seconds, err := strconv.ParseUint(value, 10, 31)
				if err == nil && !p.waits {
					p.waits, p.wait = true, time.Duration(seconds)*time.Second
				}
			}
		}
	}
	return p
}

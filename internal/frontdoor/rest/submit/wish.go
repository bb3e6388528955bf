package submit

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
)

// Wish is how a caller wants a call kept.
type Wish struct {
	preference
	key, fingerprint string
	Callback         string
	// TellOutcome asks for the member outcome in the result.
	TellOutcome bool
}

// durable says that the call must be stored before it runs.
func (w *Wish) durable() bool { return w.preference.durable() || w.key != "" || w.Callback != "" }

// ReadWish reads the headers that make a call durable; most calls have none. body is
// what the key's fingerprint is taken of.
func ReadWish(r *http.Request, body []byte) (w Wish, err error) {
	if headers := r.Header["Prefer"]; len(headers) > 0 {
		w.preference = preferred(headers)
	}
	if w.key, err = httpapi.IdempotencyKey(r); err != nil {
		return w, err
	}
	if headers := r.Header[httpapi.HeaderCallback]; len(headers) > 0 {
		w.Callback = headers[0]
	}
	if w.key != "" {
		w.fingerprint = httpapi.Fingerprint(r, body)
	}
	return w, nil
}

// AtOnce says that the caller does not wait for the end.
func (w *Wish) AtOnce() bool { return w.async && !w.waits }

// Preferred says that the caller asked for a stored call with Prefer.
func (w *Wish) Preferred() bool { return w.preference.durable() }

// Wait returns how long the caller waits for the end of a stored call; false: as long as it
// takes.
func (w *Wish) Wait() (time.Duration, bool) { return min(w.wait, MaxWait), w.waits }

// Applied is what Preference-Applied says of a stored call.
func (w *Wish) Applied() string {
	if w.waits {
		return "wait=" + strconv.Itoa(int(w.wait/time.Second))
	}
	return "respond-async"
}

// preference is what a caller says of how it wants its answer (RFC 7240).
type preference struct {
	// async: an answer at once, with the address of the call.
	async bool
	// waits: the caller takes that instead after wait.
	waits bool
	wait  time.Duration
}

// durable says that the call must outlive this request.
func (p preference) durable() bool { return p.async || p.waits }

// preferred reads the Prefer headers. What is not understood is no error: a
// preference is a wish (RFC 7240 section 2). The first of two values counts.
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

package rest

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

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

// maxIdempotencyKey is more than a UUID takes, and less than a body.
const maxIdempotencyKey = 255

// idempotencyKey returns the caller's key, empty where it sent none. The form is
// that of the IETF draft, with or without its quotation marks.
func idempotencyKey(r *http.Request) (string, error) {
	values := r.Header["Idempotency-Key"]
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	if n := len(key); n >= 2 && key[0] == '"' && key[n-1] == '"' {
		key = key[1 : n-1]
	}
	ok := len(values) == 1 && key != "" && len(key) <= maxIdempotencyKey
	for i := 0; ok && i < len(key); i++ {
		ok = key[i] > ' ' && key[i] < 0x7f
	}
	if !ok {
		return "", schema.Errorf(schema.KindInvalidRequest, "The header Idempotency-Key must be one value of 1 to %d visible ASCII characters, such as a UUID.", maxIdempotencyKey)
	}
	return key, nil
}

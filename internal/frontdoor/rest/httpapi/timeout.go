package httpapi

import (
	"net/http"
	"strconv"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Timeout returns the timeout of a call from the query or, if it is not there, from the header.
// most is the maximum.
func (x *Exchange) Timeout(r *http.Request, most time.Duration) (time.Duration, error) {
	if x.Query.Has("timeout_ms") {
		return ParseTimeout(x.Query.Get("timeout_ms"), "timeout_ms", most)
	}
	if header := r.Header["Callyard-Timeout-Ms"]; len(header) > 0 {
		return ParseTimeout(header[0], "The header Callyard-Timeout-Ms", most)
	}
	return 0, nil
}

// ParseTimeout parses a number of milliseconds. Empty text means the default of the server.
func ParseTimeout(text, name string, most time.Duration) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < 1 || ms > most.Milliseconds() {
		return 0, schema.Errorf(schema.KindInvalidRequest, "%s must be a whole number of milliseconds between 1 and %d.", name, most.Milliseconds())
	}
	return time.Duration(ms) * time.Millisecond, nil
}

package backoff

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RetryAfter parses a Retry-After header (RFC 9110, section 10.2.3): seconds or a date. Seconds may have a
// fraction, as some services send them. A longer delay than most is most. The result is 0 for a date
// before now and for any other text.
func RetryAfter(text string, now time.Time, most time.Duration) time.Duration {
	text = strings.TrimSpace(text)
	if strings.Trim(text, "0123456789.") == "" {
		seconds, _ := strconv.ParseFloat(text, 64) // 0 for no number, infinite for too large a one
		if seconds >= most.Seconds() {
			return most
		}
		return time.Duration(seconds * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), most)
	}
	return 0
}

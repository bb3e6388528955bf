package backoff

import (
	"math"
	"net/http"
	"testing"
	"time"
)

func TestRetryAfterIsANumberOrADate(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, " 7 ": 7 * time.Second, "0.5": 500 * time.Millisecond, "-7": 0, ".": 0, "1.2.3": 0,
		"soon": 0, "NaN": 0, "inf": 0, "0x10": 0, "99999999999999999999": day, "86401": day,
		now.Add(time.Minute).Format(http.TimeFormat):            time.Minute,
		now.Add(-time.Minute).Format(http.TimeFormat):           0,
		now.Add(365 * day).Format(http.TimeFormat):              day,
		now.Add(90 * time.Second).Format(time.RFC850):           90 * time.Second,
		"Sun, 01 Mar 2026 12:00:05 GMT, Sun, 01 Mar 2026 12:00": 0,
	} {
		if got := RetryAfter(value, now, day); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

func FuzzRetryAfterStaysWithinItsLimit(f *testing.F) {
	f.Add("7")
	f.Add("Fri, 31 Dec 9999 23:59:59 GMT")
	f.Fuzz(func(t *testing.T, value string) {
		for _, most := range []time.Duration{time.Hour, math.MaxInt64} {
			if d := RetryAfter(value, time.Unix(1_700_000_000, 0), most); d < 0 || d > most {
				t.Errorf("%q: %v", value, d)
			}
		}
	})
}

package webhook

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// defaultSchedule is how long a delivery waits after each failed attempt: eight
// attempts in 31 hours and some.
func defaultSchedule() []time.Duration {
	return []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour}
}

const (
	// maxRetryAfter is the longest wait that a receiver can ask for.
	maxRetryAfter = 24 * time.Hour
	// maxPause is how long a receiver's Retry-After holds back its other deliveries.
	maxPause = time.Hour
	// jitter is the part of a wait that is added by chance at most, so that deliveries
	// that failed together do not retry together.
	jitter = 0.2
)

// wait returns how long to wait after the given number of attempts, and false
// when that was the last one. chance is in [0, 1).
func wait(schedule []time.Duration, attempts int, retryAfter time.Duration, chance float64) (time.Duration, bool) {
	if attempts < 1 || attempts > len(schedule) {
		return 0, false
	}
	d := schedule[attempts-1]
	d += time.Duration(float64(d) * jitter * chance)
	return max(d, min(retryAfter, maxRetryAfter)), true
}

// retryAfter reads a Retry-After header, seconds or a date; 0 for what is neither.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0
	}
	if strings.Trim(value, "0123456789") == "" {
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil { // too large a number
			return maxRetryAfter
		}
		return min(time.Duration(n)*time.Second, maxRetryAfter)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

// Outcome is what became of an attempt, or of a delivery that was not taken.
type Outcome string

const (
	Delivered Outcome = "delivered" // the receiver answered 2xx
	Retried   Outcome = "retried"   // it did not, and is tried again later
	Dead      Outcome = "dead"      // given up; kept for [Sender.Retry]
	Refused   Outcome = "refused"   // not accepted: the outbox or the receiver's part of it is full
)

// verdict is what an answer means for the delivery.
type verdict struct {
	outcome Outcome
	reason  string        // why it was not delivered, as a sentence
	after   time.Duration // until the next attempt
	pause   time.Duration // how long the receiver wants no request at all
}

// judge is a pure function of the answer to the given attempt, counted from 1.
func judge(a answer, schedule []time.Duration, attempts int, chance float64) verdict {
	if a.reason == "" && a.status >= 200 && a.status < 300 {
		return verdict{outcome: Delivered}
	}
	reason := a.reason
	if reason == "" {
		reason = "The receiver answered " + strconv.Itoa(a.status) + "."
	}
	final := a.final
	switch {
	case a.reason != "":
	case a.status == http.StatusGone:
		reason = "The receiver answered 410: it accepts no more webhooks."
		final = true
	case a.status >= 300 && a.status < 400:
		reason = "The receiver answered with a redirect (" + strconv.Itoa(a.status) + "), which is not followed: use the final URL."
		final = true
	case a.status >= 500, slices.Contains([]int{http.StatusTooManyRequests, http.StatusRequestTimeout, http.StatusTooEarly}, a.status):
	default:
		final = true
	}
	if final {
		return verdict{outcome: Dead, reason: reason}
	}
	after, more := wait(schedule, attempts, a.retryAfter, chance)
	if !more {
		return verdict{outcome: Dead, reason: reason + " That was attempt " + strconv.Itoa(attempts) + ", the last one."}
	}
	return verdict{outcome: Retried, reason: reason, after: after, pause: min(a.retryAfter, maxPause)}
}

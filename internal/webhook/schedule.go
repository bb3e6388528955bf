package webhook

import (
	"net/http"
	"slices"
	"strconv"
	"time"
)

// defaultSchedule returns the waits after failed attempts: eight attempts in a little over 31 hours.
func defaultSchedule() []time.Duration {
	return []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour}
}

const (
	// maxRetryAfter is the longest wait that a receiver can request.
	maxRetryAfter = 24 * time.Hour
	// maxPause is the longest time for which a Retry-After delays other deliveries to the receiver.
	maxPause = time.Hour
	// jitter is the largest random fraction added to a wait, so that deliveries that failed at the
	// same time do not retry at the same time.
	jitter = 0.2
)

// wait returns the wait after the given number of attempts, and false if that was the last attempt.
// chance is in [0, 1).
func wait(schedule []time.Duration, attempts int, retryAfter time.Duration, chance float64) (time.Duration, bool) {
	if attempts < 1 || attempts > len(schedule) {
		return 0, false
	}
	d := schedule[attempts-1]
	d += time.Duration(float64(d) * jitter * chance)
	return max(d, min(retryAfter, maxRetryAfter)), true
}

// Outcome is the outcome of an attempt, or of a delivery that was not accepted.
type Outcome string

const (
	Delivered Outcome = "delivered" // the receiver answered 2xx
	Retried   Outcome = "retried"   // it did not; another attempt follows
	Dead      Outcome = "dead"      // given up; kept for [Sender.Retry]
	Refused   Outcome = "refused"   // not accepted: the outbox is full, or the receiver's share of it
)

// verdict is the consequence of a response for the delivery.
type verdict struct {
	outcome Outcome
	reason  string        // a sentence: why it was not delivered
	after   time.Duration // until the next attempt
	pause   time.Duration // no request to the receiver at all for this time
}

// judge is a pure function of the response to the given attempt, counted from 1.
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

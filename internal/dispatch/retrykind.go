package dispatch

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/pkg/schema"
)

// metaHTTP is the member of a result's _meta in which a REST service's answer stands; package
// adapt writes it.
const metaHTTP = "callyard/http"

// longestRetryAfter bounds what a service may ask for; a longer time counts as this one.
const longestRetryAfter = time.Hour

// kindOf returns the kind of failure of an attempt; "" for one that no rule can name.
func (t *trial) kindOf(res *schema.Result, err error) schema.RetryKind {
	if t.rule == nil {
		return ""
	}
	if err == nil {
		return kindOfStatus(httpAnswerOf(res).Status)
	}
	switch e := schema.AsError(err); e.Kind {
	case schema.KindServerFailed, schema.KindUnavailable:
		if e.RateLimited {
			return schema.RetryRateLimited
		}
		return schema.RetryUnavailable
	case schema.KindProtocol:
		return schema.RetryProtocol
	case schema.KindOutcomeUnknown:
		switch {
		case e.CancelRequested:
			return ""
		case !t.chosen.IsZero() && time.Since(t.chosen) >= t.budget:
			return schema.RetryTimeout
		}
		return schema.RetryUnknown
	}
	return ""
}

// kindOfStatus is the kind of failure of a result with isError whose service answered with
// the HTTP status, 0 for none.
func kindOfStatus(status int) schema.RetryKind {
	switch status {
	case http.StatusTooManyRequests:
		return schema.RetryRateLimited
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		return schema.RetryUnavailable
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return schema.RetryTimeout
	}
	return schema.RetryToolError
}

// httpAnswer is what a REST service answered.
type httpAnswer struct {
	Status int    `json:"status"`
	After  string `json:"retry-after"`
}

// httpAnswerOf returns what is said of the service's answer in a result; zero for nothing.
func httpAnswerOf(res *schema.Result) (a httpAnswer) {
	if raw := rawjson.Get(rawjson.Get(res.Body, "_meta"), metaHTTP); raw != nil {
		_ = json.Unmarshal(raw, &a) // what another server writes there says nothing
	}
	return a
}

// retryAfter reads a Retry-After header (RFC 9110, section 10.2.3): seconds or a date. Zero
// stands for none.
func (a httpAnswer) retryAfter(now time.Time) time.Duration {
	if n, err := strconv.ParseUint(a.After, 10, 31); err == nil {
		return min(time.Duration(n)*time.Second, longestRetryAfter)
	}
	if at, err := http.ParseTime(a.After); err == nil {
		return min(max(at.Sub(now), 0), longestRetryAfter)
	}
	return 0
}

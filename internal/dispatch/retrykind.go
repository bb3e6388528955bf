package dispatch

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/pkg/schema"
)

// metaHTTP is the member of a result's _meta with the answer of a REST service. Package adapt
// writes it.
const metaHTTP = "callyard/http"

// longestRetryAfter limits the delay that a service can request. Longer delays are reduced to it.
const longestRetryAfter = time.Hour

// kindOf returns the kind of failure of an attempt, or "" if no rule can name it.
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

// kindOfStatus returns the kind of failure of a result with isError, by the HTTP status of the
// service; 0 means that there is none.
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

// httpAnswer holds the answer of a REST service.
type httpAnswer struct {
	Status int    `json:"status"`
	After  string `json:"retry-after"`
}

// httpAnswerOf returns the service's answer from a result, or the zero value.
func httpAnswerOf(res *schema.Result) (a httpAnswer) {
	if raw := rawjson.Get(rawjson.Get(res.Body, "_meta"), metaHTTP); raw != nil {
		_ = json.Unmarshal(raw, &a) // other servers may use the member differently
	}
	return a
}

package submit

import (
	"bytes"
	"net/http"
	"strconv"
	"time"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// Every answer to POST /calls, and every answer with 202, has the member outcome. So a program that
// ignores the status cannot mistake a held call for one that has run. Results of other paths
// contain only the tool's result.
const (
	MemberOutcome    = "outcome"
	OutcomeCompleted = "completed" // the tool returned a result
	OutcomeHeld      = "held"      // the call waits for an approval and has not run
	OutcomeAccepted  = "accepted"  // the call is stored and continues without its caller
)

// SendResult answers with the result of a call, byte for byte. If tellOutcome is set, the member
// outcome is appended.
func SendResult(x *httpapi.Exchange, res *schema.Result, tellOutcome bool) {
	if res.Worker != "" {
		x.Set("Callyard-Worker", string(res.Worker))
	}
	cached(x, &res.Cache)
	body := res.Body
	if tellOutcome {
		body = withOutcome(body, OutcomeCompleted)
	}
	x.SendJSON(http.StatusOK, body)
}

// withOutcome returns a copy of a JSON object with the member outcome appended. Other values are
// returned unchanged.
func withOutcome(object []byte, outcome string) []byte {
	return rawjson.With(bytes.TrimSpace(object), MemberOutcome, []byte(`"`+outcome+`"`))
}

// cached reports how the cache handled the call (RFC 9211).
func cached(x *httpapi.Exchange, c *schema.Caching) {
	status := ""
	switch {
	case c.Hit:
		x.Set("Age", strconv.FormatInt(int64(c.Age/time.Second), 10))
		status = "callyard; hit; ttl=" + strconv.FormatInt(int64(c.TTL/time.Second), 10)
	case c.Collapsed:
		status = "callyard; fwd=miss; collapsed"
	case c.Miss:
		status = "callyard; fwd=miss"
	case c.Fresh:
		status = "callyard; fwd=request"
	default:
		return
	}
	if c.Stored && !c.Collapsed {
		status += "; stored"
	}
	x.Set("Cache-Status", status)
}

// note adds the call to the span of the request.
func note(x *httpapi.Exchange, call *schema.Call) {
	x.Span.Text(telemetry.KeyCall, string(call.ID))
	x.Span.Text(telemetry.KeyServer, string(call.Server))
	x.Span.Text(telemetry.KeyTool, call.Tool)
}

// noteOutcome adds the outcome of the call to the span, if it has ended. A call that is held or
// accepted has not.
func noteOutcome(x *httpapi.Exchange, out *calls.Outcome, err error) {
	if err != nil || out.Result != nil {
		x.Span.Outcome(out.Result, err)
	}
}

package httpapi

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// headersFault fails for an error that a caller would consider an internal error.
func headersFault(t *testing.T, err error) {
	t.Helper()
	switch kind := schema.KindOf(err); kind {
	case schema.KindInvalidRequest, schema.KindTooLarge:
	default:
		t.Fatalf("refused with %s: %v", kind, err)
	}
}

func FuzzCallHeadersAreReadOrRefused(f *testing.F) {
	f.Add("8e03978e-40d5-43dd-bc93-6894a57f9324", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "a=b", "5000", "timeout_ms=1")
	f.Add(`"quoted"`, "00-00000000000000000000000000000000-0000000000000000-00", "", "-1", "timeout_ms=&x")
	f.Add(`"`, "ff", "\x00", "99999999999999999999", "%zz")
	const most = time.Minute
	timeoutOnly := queryParameters(&huma.Operation{Parameters: []*huma.Param{openapi.QueryParam("timeout_ms", "", openapi.Integers(1, float64(most.Milliseconds())))}})
	f.Fuzz(func(t *testing.T, key, parent, state, ms, rawQuery string) {
		r := &http.Request{Header: http.Header{
			"Idempotency-Key": {key}, "Traceparent": {parent}, "Tracestate": {state}, "Callyard-Timeout-Ms": {ms}, "Content-Type": {state},
		}, URL: &url.URL{RawQuery: rawQuery}}
		if _, err := IdempotencyKey(r); err != nil {
			headersFault(t, err)
		}
		values, err := timeoutOnly.read(r.URL)
		if err != nil {
			headersFault(t, err)
			return
		}
		if d, err := (&Exchange{Query: values}).Timeout(r, most); err != nil {
			headersFault(t, err)
		} else if d < 0 || d > most {
			t.Fatalf("%q %q asks for %s", ms, rawQuery, d)
		}
		if trace := TraceOf(r); trace.Parent != "" && (len(trace.Parent) != traceParentLength || len(trace.State) > maxTraceState) {
			t.Fatalf("%q %q is taken for a trace", parent, state)
		}
		if err := checkMediaType(r.Header); err != nil && schema.KindOf(err) != problem.KindMediaType {
			t.Fatalf("%q: %v", state, err)
		}
	})
}

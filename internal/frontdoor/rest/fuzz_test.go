package rest

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/callyard/callyard/internal/admission"
	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/bodies"
	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/pkg/schema"
	"github.com/callyard/callyard/pkg/schema/validate"
)

// bare is an API that reads and does nothing else.
func bare() *API {
	return &API{limits: admission.Limits{ArgumentBytes: 1 << 16, ArgumentDepth: 64, MaxTimeout: limits.MaxTimeout}, kinds: kindTable(), bodies: bodies.New(smallBodies, largeBodies)}
}

// callersFault fails for an error that a caller would have to take for a fault of ours.
func callersFault(t *testing.T, err error) {
	t.Helper()
	switch kind := schema.KindOf(err); kind {
	case schema.KindInvalidRequest, schema.KindTooLarge:
	default:
		t.Fatalf("refused with %s: %v", kind, err)
	}
}

func FuzzALineOfABatchIsACallOrTheCallersFault(f *testing.F) {
	for _, seed := range []string{
		`{"custom_id":"a","server":"demo","tool":"echo","arguments":{"a":[1,"}"]}}`, `{"server":"demo","tool":"echo"}`, ` {"tool":"x" , "server":"y","arguments":{ } }`, `{}`, `null`,
		`{"server":"demo","tool":"echo","timeout_ms":5}`, `{"server":"\u0064","tool":"\\\"","arguments":{}}`, `{"server":"demo","tool":"echo","arguments":[]}`, `{"server":"demo","tool":"echo","custom_id":null}`,
		`{"server":"demo","server":"x","tool":"echo"}`, `{"server":"","tool":""}`, `{"server":"demo","tool":"echo","arguments":null}`, `{"arguments":{"\\":"\\\\"},"tool":"a","server":"b"}`,
	} {
		f.Add([]byte(seed))
	}
	a := bare()
	f.Fuzz(func(t *testing.T, line []byte) {
		rec, _, err := a.readItem(line)
		if err != nil {
			callersFault(t, err)
		} else if validate.Value(rec.Arguments, 1<<20, 100) != nil {
			t.Fatalf("%q has the arguments %q", line, rec.Arguments)
		}
	})
}

func FuzzABatchDocumentIsReadOrTheCallersFault(f *testing.F) {
	for _, seed := range []string{
		`{"calls":[{"custom_id":"a","server":"demo","tool":"echo"}],"priority":3,"expires_in":60,"labels":{"a":"b"},"open":true,"stream":false}`, `{"open":true}`, `{"calls":[]}`, `{"calls":[1,null,{}]}`,
		`{"calls":null}`, `{"priority":1e3}`, `{"expires_in":4294967295,"open":true}`, `{"expires_in":-1}`, `{"labels":{"a":1}}`, `[]`, `{"callback_url":"http://[::1"}`,
	} {
		f.Add([]byte(seed))
	}
	a := bare()
	f.Fuzz(func(t *testing.T, body []byte) {
		var o batch.Order
		var open, stream bool
		source, err := a.readBatch(body, &o, &open, &stream)
		if err != nil {
			callersFault(t, err)
			return
		}
		if o.Life < 0 || len(o.Labels) > 32 {
			t.Fatalf("%q asks for %+v", body, o)
		}
		for n := 0; n < 1000; n++ {
			if _, _, err := source.next(); err != nil && !isRefusal(err) {
				t.Fatalf("%q: %v", body, err)
			} else if err != nil && schema.KindOf(err) != schema.KindInvalidRequest && schema.KindOf(err) != schema.KindTooLarge {
				return // the end
			}
		}
	})
}

func FuzzACursorOfToolsIsOursOrRefused(f *testing.F) {
	f.Add(cursor{"demo", "echo"}.String())
	f.Add("")
	f.Add("!")
	f.Add("AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := readCursor(text)
		if err != nil {
			callersFault(t, err)
			return
		}
		if again, err := readCursor(c.String()); err != nil || again != c {
			t.Fatalf("%q is %+v, and the second time %+v: %v", text, c, again, err)
		}
	})
}

func FuzzHeadersOfACallAreReadOrTheCallersFault(f *testing.F) {
	f.Add("8e03978e-40d5-43dd-bc93-6894a57f9324", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "a=b", "5000", "timeout_ms=1")
	f.Add(`"quoted"`, "00-00000000000000000000000000000000-0000000000000000-00", "", "-1", "timeout_ms=&x")
	f.Add(`"`, "ff", "\x00", "99999999999999999999", "%zz")
	a := bare()
	timeoutOnly := queryParameters(&huma.Operation{Parameters: []*huma.Param{queryParam("timeout_ms", "", integers(1, float64(a.limits.MaxTimeout.Milliseconds())))}})
	f.Fuzz(func(t *testing.T, key, parent, state, ms, rawQuery string) {
		r := &http.Request{Header: http.Header{
			"Idempotency-Key": {key}, "Traceparent": {parent}, "Tracestate": {state}, "Callyard-Timeout-Ms": {ms}, "Content-Type": {state},
		}, URL: &url.URL{RawQuery: rawQuery}}
		if _, err := idempotencyKey(r); err != nil {
			callersFault(t, err)
		}
		values, err := timeoutOnly.read(r.URL)
		if err != nil {
			callersFault(t, err)
			return
		}
		if d, err := a.requestTimeout(&exchange{query: values}, r); err != nil {
			callersFault(t, err)
		} else if d < 0 || d > a.limits.MaxTimeout {
			t.Fatalf("%q %q asks for %s", ms, rawQuery, d)
		}
		if trace := traceOf(r); trace.Parent != "" && (len(trace.Parent) != traceParentLength || len(trace.State) > traceStateMost) {
			t.Fatalf("%q %q is taken for a trace", parent, state)
		}
		if err := checkMediaType(r.Header); err != nil && schema.KindOf(err) != kindMediaType {
			t.Fatalf("%q: %v", state, err)
		}
	})
}

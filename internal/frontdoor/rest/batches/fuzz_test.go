package batches

import (
	"testing"
	"time"

	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/calls/admission"
	"github.com/callyard/callyard/internal/validate"
	"github.com/callyard/callyard/pkg/schema"
)

// bareLimits are the limits of calls in tests without a fabric.
var bareLimits = admission.Limits{ArgumentBytes: 1 << 16, ArgumentDepth: 64, MaxTimeout: time.Minute}

// callersFault fails for an error that a caller would consider an internal error.
func callersFault(t *testing.T, err error) {
	t.Helper()
	switch kind := schema.KindOf(err); kind {
	case schema.KindInvalidRequest, schema.KindTooLarge:
	default:
		t.Fatalf("refused with %s: %v", kind, err)
	}
}

func FuzzBatchLineIsReadOrRefused(f *testing.F) {
	for _, seed := range []string{
		`{"custom_id":"a","server":"demo","tool":"echo","arguments":{"a":[1,"}"]}}`, `{"server":"demo","tool":"echo"}`, ` {"tool":"x" , "server":"y","arguments":{ } }`, `{}`, `null`,
		`{"server":"demo","tool":"echo","timeout_ms":5}`, `{"server":"\u0064","tool":"\\\"","arguments":{}}`, `{"server":"demo","tool":"echo","arguments":[]}`, `{"server":"demo","tool":"echo","custom_id":null}`,
		`{"server":"demo","server":"x","tool":"echo"}`, `{"server":"","tool":""}`, `{"server":"demo","tool":"echo","arguments":null}`, `{"arguments":{"\\":"\\\\"},"tool":"a","server":"b"}`,
	} {
		f.Add([]byte(seed))
	}
	lines := lineReader{bareLimits}
	f.Fuzz(func(t *testing.T, line []byte) {
		rec, _, err := lines.readItem(line)
		if err != nil {
			callersFault(t, err)
		} else if validate.Value(rec.Arguments, 1<<20, 100) != nil {
			t.Fatalf("%q has the arguments %q", line, rec.Arguments)
		}
	})
}

func FuzzBatchDocumentIsReadOrRefused(f *testing.F) {
	for _, seed := range []string{
		`{"calls":[{"custom_id":"a","server":"demo","tool":"echo"}],"priority":3,"expires_in":60,"labels":{"a":"b"},"open":true,"stream":false}`, `{"open":true}`, `{"calls":[]}`, `{"calls":[1,null,{}]}`,
		`{"calls":null}`, `{"priority":1e3}`, `{"expires_in":4294967295,"open":true}`, `{"expires_in":-1}`, `{"labels":{"a":1}}`, `[]`, `{"callback_url":"http://[::1"}`,
	} {
		f.Add([]byte(seed))
	}
	lines := lineReader{bareLimits}
	f.Fuzz(func(t *testing.T, body []byte) {
		var o batch.Order
		var open, stream bool
		source, err := lines.readBatch(body, &o, &open, &stream)
		if err != nil {
			callersFault(t, err)
			return
		}
		if o.Life < 0 || len(o.Labels) > 32 {
			t.Fatalf("%q asks for %+v", body, o)
		}
		for range 1000 {
			if _, _, err := source.next(); err != nil && !isRefusal(err) {
				t.Fatalf("%q: %v", body, err)
			} else if err != nil && schema.KindOf(err) != schema.KindInvalidRequest && schema.KindOf(err) != schema.KindTooLarge {
				return // the end
			}
		}
	})
}

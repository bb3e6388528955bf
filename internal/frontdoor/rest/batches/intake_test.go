package batches

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/pkg/schema"
)

func TestCallsOfABatchDocumentKeepTheirBytes(t *testing.T) {
	lines := lineReader{bareLimits}
	for _, c := range []struct {
		body string
		want []string
	}{
		{`{"calls":[]}`, nil}, {`{"calls" : [ ] }`, nil},
		{`{"calls":[{"server":"a","tool":"b"} , {"server":"c","tool":"d","arguments":{"x":[1,[2],"]}"]}}]}`, []string{"{}", `{"x":[1,[2],"]}"]}`}},
		{`{"\u0063alls":[{"server":"a","tool":"b","arguments":{ "y" :1e2}}]}`, []string{`{ "y" :1e2}`}},
		{`{"calls":[[{"server":"a","tool":"b"}],1,null,"x"]}`, []string{"refused", "refused", "refused", "refused"}},
	} {
		var open, stream bool
		open = true
		var o batch.Order
		source, err := lines.readBatch([]byte(c.body), &o, &open, &stream)
		if err != nil && len(c.want) > 0 {
			t.Fatalf("%s: %v", c.body, err)
		}
		if err != nil {
			continue // a batch without calls must be marked as open
		}
		var got []string
		for range o.Calls {
			rec, _, err := source.next()
			switch {
			case err == nil:
				got = append(got, string(rec.Arguments))
			case schema.KindOf(err) == schema.KindInvalidRequest:
				got = append(got, "refused")
			}
		}
		if _, _, err := source.next(); err != io.EOF {
			t.Errorf("%s: %v behind the last call", c.body, err)
		}
		if strings.Join(got, "|") != strings.Join(c.want, "|") {
			t.Errorf("%s has the calls %q, want %q", c.body, got, c.want)
		}
	}
	huge := bytes.Repeat([]byte("0,"), 1<<20)
	huge = append(append([]byte(`{"calls":[`), huge...), "0]}"...)
	var open, stream bool
	var o batch.Order
	if n := testing.AllocsPerRun(1, func() {
		if _, err := lines.readBatch(huge, &o, &open, &stream); err != nil {
			t.Fatal(err)
		}
	}); n > 1000 || o.Calls != 1<<20+1 {
		t.Errorf("%d calls cost %v allocations", o.Calls, n)
	}
}

func TestABatchThatIsPartlyStoredSaysThatItsFirstCallsRun(t *testing.T) {
	full := schema.Errorf(schema.KindUnavailable, "nothing was stored").RetryableAfter(5e9)
	for _, c := range []struct {
		stored    uint64
		o         takeOptions
		err       error
		says      string
		retryable bool
	}{
		{0, takeOptions{from: -1}, full, "nothing was stored", true},
		{7, takeOptions{from: -1}, full, "The first 7 calls of batch batch_1 are stored and run; the others could not be stored. Send the others to POST /batches/batch_1/calls?from=7", false},
		{7, takeOptions{from: -1, again: true}, full, "Repeat the request with its Idempotency-Key.", true},
		{7, takeOptions{from: 5}, full, "calls?from=7", true},
		{7, takeOptions{from: -1}, schema.Errorf(schema.KindConflict, "another"), "another", false},
	} {
		e := schema.AsError(errPartlyStored("batch_1", c.stored, c.o, c.err))
		if !strings.Contains(e.Detail, c.says) || e.Retryable != c.retryable || e.Kind == schema.KindUnavailable && e.RetryAfter != full.RetryAfter {
			t.Errorf("%d stored, %+v: %+v", c.stored, c.o, e)
		}
	}
}

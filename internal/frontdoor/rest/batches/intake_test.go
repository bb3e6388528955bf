package batches

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/pkg/schema"
)

func TestTheCallsOfADocumentStandAsTheyCame(t *testing.T) {
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

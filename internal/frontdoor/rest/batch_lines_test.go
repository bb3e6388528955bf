package rest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/frontdoor/rest/batches"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/pkg/schema"
)

// A file that an editor began with a byte order mark may be sent unchanged.
func TestByteOrderMarkBeforeTheFirstCallIsSkipped(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	const mark = "\xef\xbb\xbf"
	line := `{"server":"demo","tool":"echo","arguments":{"message":"m"}}` + "\n"
	for text, refused := range map[string]uint64{mark + line + line: 0, mark + line + mark + line: 1} {
		var b batches.Batch
		if err := json.Unmarshal(f.do("POST", "/batches", text, "Content-Type", "application/x-ndjson").body, &b); err != nil || b.Refused != refused {
			t.Errorf("%q: %d lines were refused, %v: %+v", text, b.Refused, err, b.Refusals)
		}
	}
}

// Calls of a server that no worker has announced wait, and the batch names the server while they do.
func TestABatchNamesTheServersThatItsCallsWaitFor(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	lines := `{"server":"dmeo","tool":"echo"}` + "\n" + `{"server":"demo","tool":"echo"}` + "\n" + `{"server":"` + strings.Repeat("x", 1000) + `","tool":"echo"}`
	var b batches.Batch
	if err := json.Unmarshal(f.do("POST", "/batches", lines, "Content-Type", "application/x-ndjson").body, &b); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "the missing server", func() bool { return slices.Equal(f.showBatch(b.ID).Missing, []schema.ServerID{"dmeo"}) })
	if a := f.do("POST", "/batches/"+string(b.ID)+"/cancel", ""); a.status >= 300 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	polltest.Until(t, "the end of the batch", func() bool { return f.showBatch(b.ID).State == "canceled" })
	if now := f.showBatch(b.ID); now.Missing != nil {
		t.Errorf("a batch that has ended waits for %q", now.Missing)
	}
}

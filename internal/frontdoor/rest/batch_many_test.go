package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/frontdoor/rest/batches"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/pkg/schema"
)

// refusedRow is the number of consecutive refused lines that ends a batch.
const refusedRow = 1000

// callsOf returns calls of the tools, one per line.
func callsOf(tools ...string) string {
	var b strings.Builder
	for i, tool := range tools {
		fmt.Fprintf(&b, `{"custom_id":"line-%d","server":"demo","tool":%q,"arguments":{"city":"Bonn"}}`+"\n", i, tool)
	}
	return b.String()
}

func TestEveryOutcomeHasItsResultLineInALargeBatch(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	ends := map[string]string{"echo": "succeeded", "fail": "succeeded", "lines": "succeeded", "large": "succeeded", "rpc": "failed", "late-error": "failed", "no-such-tool": "failed"}
	var tools []string
	for n := range 30 {
		tools = append(tools, "echo", "fail", "echo", "rpc", "lines", "echo", "no-such-tool", "late-error")
		if n%10 == 0 {
			tools = append(tools, "large")
		}
	}
	body := callsOf(tools...) + "{\"custom_id\":\"line-0\",\"server\":\"demo\",\"tool\":\"echo\"}\n{not JSON\n"
	a := f.do("POST", "/batches?stream=true", body, "Content-Type", "application/x-ndjson")
	if a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	id := schema.BatchID(strings.TrimPrefix(a.header.Get("Location"), "/batches/"))
	streamed := bytes.Count(a.body, []byte("\n"))
	lines := f.lines(id)
	if len(lines) != len(tools)+2 || streamed != len(lines) {
		t.Fatalf("%d calls have %d results, of which %d were streamed", len(tools)+2, len(lines), streamed)
	}
	for i, tool := range tools {
		got := lines[uint64(i)]
		if got.State != ends[tool] || got.CustomID != fmt.Sprintf("line-%d", i) || got.ToolError != (tool == "fail") {
			t.Errorf("line %d, %s: %+v", i, tool, got)
		}
	}
	for _, i := range []int{len(tools), len(tools) + 1} {
		if got := lines[uint64(i)]; got.State != "failed" {
			t.Errorf("line %d: %+v", i, got)
		}
	}
	if b := f.showBatch(id); b.State != "completed" {
		t.Errorf("the batch is %+v", b)
	}
}

func TestABatchEndsAfterManyRefusedLinesInARow(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	few := strings.Repeat("x\n", refusedRow-1)
	if a := f.do("POST", "/batches", few+callsOf("echo")+few, "Content-Type", "application/x-ndjson"); a.status != http.StatusCreated {
		t.Fatalf("never so many in a row: %d %s", a.status, a.body)
	}
	a := f.do("POST", "/batches", callsOf("echo")+strings.Repeat("x\n", 10*refusedRow), "Content-Type", "application/x-ndjson")
	if a.status != http.StatusBadRequest || !bytes.Contains(a.body, []byte("1000 consecutive lines were refused")) || !bytes.Contains(a.body, []byte("Line 1: ")) {
		t.Errorf("%d %s", a.status, a.body)
	}
	id := schema.BatchID(strings.TrimPrefix(a.header.Get("Location"), "/batches/"))
	polltest.Until(t, "the batch is canceled", func() bool { return f.showBatch(id).State == "canceled" })
	if b := f.showBatch(id); b.Calls != 1+refusedRow || !strings.Contains(b.Reason, "1000 consecutive lines were refused") {
		t.Errorf("the batch is %+v", b)
	}
}

func TestRefusedLinesAreStoredCompactly(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	var body strings.Builder
	for range 10 { // fewer consecutive ones than end the batch
		body.WriteString(strings.Repeat("x\n", refusedRow-1) + `{"server":"demo","tool":"echo"}` + "\n")
	}
	a := f.do("POST", "/batches", body.String(), "Content-Type", "application/x-ndjson")
	if a.status != http.StatusCreated {
		t.Fatalf("%d %s", a.status, a.body)
	}
	id := schema.BatchID(strings.TrimPrefix(a.header.Get("Location"), "/batches/"))
	polltest.Until(t, "the batch is completed", func() bool { return f.showBatch(id).State == "completed" })
	const lines = 10 * refusedRow
	seen := make([]bool, lines)
	at := ""
	for n := 0; n < lines; { // page by page, so that a page ends within a run
		page := f.do("GET", "/batches/"+string(id)+"/results?limit=777&cursor="+at, "")
		got := bytes.Split(bytes.TrimSpace(page.body), []byte("\n"))
		for _, line := range got {
			var r struct {
				Index         int
				State, Cursor string
				CallID        string `json:"call_id"`
				Problem       *struct {
					CallID string `json:"call_id"`
				}
			}
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatalf("%v: %.300s", err, line)
			}
			good := r.Index%refusedRow == refusedRow-1
			if r.Index < 0 || r.Index >= lines || seen[r.Index] || good != (r.State == "succeeded") || r.CallID != f.callID(id, uint64(r.Index)) || !good && (r.Problem == nil || r.Problem.CallID != r.CallID) {
				t.Fatalf("%.300s", line)
			}
			seen[r.Index] = true
			at = r.Cursor
		}
		n += len(got)
	}
	if sent, stored := uint64(body.Len()), f.NATS.Stored(t); stored > 40*sent { // lines of two bytes; it was 160 times as much, and where the machine is slow a run is stored in several pieces
		t.Errorf("%d bytes of lines were stored as %d", sent, stored)
	} else {
		t.Logf("%d bytes of lines were stored as %d", sent, stored)
	}
}

// endless is a line without an end. It counts the bytes read.
type endless struct{ read atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	e.read.Add(int64(len(p)))
	return len(p), nil
}

func TestEndlessLineIsNotReadBeyondTheLimit(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	line := &endless{}
	r := f.request("POST", "/batches", line, "Content-Type", "application/x-ndjson")
	a := f.send(r)
	if a.status != http.StatusRequestEntityTooLarge || !bytes.Contains(a.body, []byte("A line of the body has more than")) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if n := line.read.Load(); n > 64<<20 {
		t.Errorf("%d bytes were read", n)
	}
}

func TestCanceledBatchRecallsUnsentCalls(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	var tools []string
	for range 100 {
		tools = append(tools, "hang")
	}
	b := f.batchOf(f.do("POST", "/batches", callsOf(tools...), "Content-Type", "application/x-ndjson"), http.StatusCreated)
	polltest.Until(t, "a call that runs", func() bool {
		select {
		case <-f.Worker.Asked:
			return true
		default:
			return false
		}
	})
	if a := f.do("POST", "/batches/"+string(b.ID)+"/cancel", ""); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	ran := 0
	polltest.Until(t, "the batch having ended", func() bool {
		ran += f.Worker.Finish()
		for {
			select {
			case <-f.Worker.Asked:
				continue
			default:
			}
			return f.showBatch(b.ID).State == "canceled"
		}
	})
	good, canceled := 0, 0
	for _, line := range f.lines(b.ID) {
		switch line.State {
		case "succeeded":
			good++
		case "canceled":
			canceled++
		}
	}
	if good != ran || good+canceled != len(tools) || canceled == 0 {
		t.Errorf("of %d calls %d ran, %d succeeded and %d were canceled", len(tools), ran, good, canceled)
	}
}

func TestExpectContinueIsAnsweredBeforeResultsStream(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	own := http.DefaultTransport.(*http.Transport).Clone()
	own.ExpectContinueTimeout = time.Hour
	defer own.CloseIdleConnections()
	f.client = &http.Client{Transport: own, Timeout: time.Minute}
	r := f.request("POST", "/batches?stream=true", strings.NewReader(callsOf("echo", "echo")), "Content-Type", "application/x-ndjson", "Expect", "100-continue")
	a := f.send(r)
	if n := bytes.Count(a.body, []byte(`"state":"succeeded"`)); a.status != http.StatusOK || n != 2 {
		t.Errorf("%d, %d results: %s", a.status, n, a.body)
	}
}

func TestStreamOfAnOpenBatchContinuesUntilTheBatchIsSealed(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	streamed := make(chan answer, 1)
	r := f.request("POST", "/batches?stream=true&open=true", strings.NewReader(callsOf("echo")), "Content-Type", "application/x-ndjson")
	go func() { streamed <- f.send(r) }()
	var list batches.BatchList
	polltest.Until(t, "the first call", func() bool {
		return json.Unmarshal(f.do("GET", "/batches", "").body, &list) == nil && len(list.Batches) == 1 && list.Batches[0].Counts.Succeeded == 1
	})
	path := "/batches/" + string(list.Batches[0].ID)
	if a := f.do("POST", path+"/calls", `{"custom_id":"later","server":"demo","tool":"echo"}`, "Content-Type", "application/x-ndjson"); a.status != http.StatusOK {
		t.Errorf("adding a call: %d %s", a.status, a.body)
	}
	if a := f.do("POST", path+"/seal", ""); a.status != http.StatusOK {
		t.Errorf("sealing: %d %s", a.status, a.body)
	}
	if a := <-streamed; a.status != http.StatusOK || bytes.Count(a.body, []byte(`"state":"succeeded"`)) != 2 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

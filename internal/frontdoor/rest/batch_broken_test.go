package rest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/pkg/schema"
)

// Under the race detector: the answer is being written while its request breaks.
func TestALineThatBreaksWhileResultsAreStreamedTouchesNothingOfTheAnswer(t *testing.T) {
	f := openFabric(t, nil)
	host := strings.TrimPrefix(f.url, "http://")
	for range 20 {
		conn, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(conn, "POST /batches?stream=true HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n", host)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body) // it ends one way or the other
		_ = res.Body.Close()
		_ = conn.Close()
		if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusBadRequest {
			t.Fatalf("the answer is %d", res.StatusCode)
		}
	}
	if strings.Contains(f.log.String(), "panicked") {
		t.Error(f.log)
	}
}

func TestABodyIsRefusedWhileThereIsNoRoomAndTakenAfterwards(t *testing.T) {
	f := openFabric(t, nil)
	f.api.bodies = bodies.New(1000, 0)
	body := `{"a":"` + strings.Repeat("x", 2000) + `"}`
	a := f.do("POST", "/servers/demo/tools/echo", body)
	if p := problemOf(t, a); p.Type != "/problems/unavailable" || !p.Retryable {
		t.Errorf("%s", a.body)
	}
	if a := f.do("POST", "/servers/demo/tools/echo", `{"a":1}`); a.status != 200 {
		t.Errorf("a small body is answered with %d %s", a.status, a.body)
	}
	if small, _ := f.api.bodies.Left(); small != 1000 {
		t.Errorf("of the room %d bytes are left", small)
	}
}

func TestTheCallsOfADocumentStandAsTheyCame(t *testing.T) {
	a := bare()
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
		source, err := a.readBatch([]byte(c.body), &o, &open, &stream)
		if err != nil && len(c.want) > 0 {
			t.Fatalf("%s: %v", c.body, err)
		}
		if err != nil {
			continue // a batch without calls must say that it is open
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
		if _, err := a.readBatch(huge, &o, &open, &stream); err != nil {
			t.Fatal(err)
		}
	}); n > 1000 || o.Calls != 1<<20+1 {
		t.Errorf("%d calls cost %v allocations", o.Calls, n)
	}
}

package callyard

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// closing records whether it was closed.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

func answer(status int, mediaType, body string) (*http.Response, *closing) {
	c := &closing{Reader: strings.NewReader(body)}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {mediaType}}, Body: c}, c
}

func TestLastLineNeedsNoLineFeed(t *testing.T) {
	res, body := answer(200, LinesType, "{\"index\":0,\"cursor\":\"a\"}\n\n{\"index\":1,\"cursor\":\"b\"}")
	var cursors []string
	for result, err := range Lines[BatchResult](res, nil) {
		if err != nil {
			t.Fatal(err)
		}
		cursors = append(cursors, result.Cursor)
	}
	if !slices.Equal(cursors, []string{"a", "b"}) || !body.closed {
		t.Errorf("%q, closed %v", cursors, body.closed)
	}
}

func TestLineIsAvailableAsRawBytes(t *testing.T) {
	res, _ := answer(200, LinesType, `{"result":{"big":90071992547409931}}`+"\n")
	for line, err := range Lines[json.RawMessage](res, nil) {
		if err != nil || string(line) != `{"result":{"big":90071992547409931}}` {
			t.Errorf("%s, %v", line, err)
		}
	}
}

func TestStoppingIterationClosesTheBody(t *testing.T) {
	for name, read := range map[string]func(*http.Response){
		"lines": func(r *http.Response) {
			for range Lines[BatchResult](r, nil) {
				break
			}
		},
		"events": func(r *http.Response) {
			for range Events(r, nil) {
				break
			}
		},
	} {
		res, body := answer(200, "", "data:1\n\ndata:2\n\n")
		read(res)
		if !body.closed {
			t.Errorf("%s: the answer is left open", name)
		}
	}
}

func TestARefusalIsAnError(t *testing.T) {
	const document = `{"type":"/problems/invalid-arguments","title":"Invalid arguments","status":422,"detail":"They do not fit.","error":"They do not fit.","retryable":false,"errors":[{"pointer":"/a","message":"expected a number"}]}`
	res, body := answer(422, "application/problem+json", document)
	count := 0
	for _, err := range Lines[BatchResult](res, nil) {
		count++
		var refusal *ProblemError
		if !errors.As(err, &refusal) || refusal.Problem.Type != "/problems/invalid-arguments" || err.Error() != "They do not fit. [/a: expected a number]" {
			t.Errorf("%v", err)
		}
	}
	if count != 1 || !body.closed {
		t.Errorf("%d errors, closed %v", count, body.closed)
	}
	// The error of a proxy is not a problem document.
	res, _ = answer(503, "text/html", "<h1>down</h1>")
	res.Header.Set("Retry-After", "7")
	var refusal *ProblemError
	if err := Check(res, []byte("<h1>down</h1>")); !errors.As(err, &refusal) || refusal.Problem.Status != 503 || refusal.RetryAfter.Seconds() != 7 || err.Error() != "503 Service Unavailable" {
		t.Errorf("%v", err)
	}
	gone := errors.New("nobody there")
	for _, err := range Events(nil, gone) {
		if !errors.Is(err, gone) {
			t.Errorf("%v", err)
		}
	}
}

func TestEventsAreParsedAsSpecified(t *testing.T) {
	const stream = ": alive\n\nevent: fleet\nid: 1\ndata: {\"a\":\ndata: 1}\n\nretry: 5\ndata:{}\r\n\r\nevent: none\n\ndata: cut"
	res, _ := answer(200, "text/event-stream", stream)
	var got []Event
	for e, err := range Events(res, nil) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	want := []Event{{Name: "fleet", ID: "1", Data: json.RawMessage("{\"a\":\n1}")}, {Data: json.RawMessage("{}")}}
	if !slices.EqualFunc(got, want, func(a, b Event) bool { return a.Name == b.Name && a.ID == b.ID && bytes.Equal(a.Data, b.Data) }) {
		t.Errorf("%+v", got)
	}
}

func TestBodyOfLinesIsGeneratedWhileItIsRead(t *testing.T) {
	made := 0
	body := LinesOf(func(yield func(BatchCall) bool) {
		for _, tool := range []string{"a", "b", "c"} {
			made++
			if !yield(BatchCall{Server: "demo", Tool: tool}) {
				return
			}
		}
	})
	if _, err := body.Read(make([]byte, 8)); err != nil || made != 1 {
		t.Errorf("%d calls were made for the first bytes, %v", made, err)
	}
	if err := body.Close(); err != nil || made != 1 {
		t.Errorf("%d calls were made, %v", made, err)
	}
	all, err := io.ReadAll(LinesOf(slices.Values([]int{1, 2})))
	if err != nil || string(all) != "1\n2\n" {
		t.Errorf("%q, %v", all, err)
	}
}

func FuzzEventsNeverHangOrPanic(f *testing.F) {
	f.Add("event: a\ndata: 1\n\n")
	f.Add(":\n\ndata\n\n\r\n")
	f.Fuzz(func(t *testing.T, stream string) {
		events := 0
		if err := readEvents(strings.NewReader(stream), func(e Event) bool {
			events++
			return true
		}); err != nil {
			t.Errorf("a string cannot fail: %v", err)
		}
		if ends := strings.Count(stream, "\n"); events > ends {
			t.Errorf("%d events of %d lines", events, ends)
		}
	})
}

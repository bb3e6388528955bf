package sse

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/kit/lines"
)

func collect(r io.Reader) (events [][2]string, err error) {
	in := NewReader(r, lines.Short, 8<<20)
	for {
		e, err := in.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return events, err
		}
		events = append(events, [2]string{e.Name, string(e.Data)})
	}
}

func TestStreamIsReadWithAnyLineEnding(t *testing.T) {
	stream := "\ufeff: hello\n\nevent: progress\nid: 7\nretry: 1\ndata: {\"a\":\ndata:  1}\n\ndata:x\n\ndata\n\nevent: nothing\n\n\nevent: late\ndata: cut off"
	want := [][2]string{{"progress", "{\"a\":\n 1}"}, {"", "x"}, {"", ""}}
	for name, end := range map[string]string{"LF": "\n", "CRLF": "\r\n", "CR": "\r"} {
		text := strings.ReplaceAll(stream, "\n", end)
		for _, r := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text))} {
			got, err := collect(r)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
			}
		}
	}
}

func TestLongLineIsReadWhole(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	got, err := collect(strings.NewReader("event: result\ndata: " + long + "\n\n"))
	if err != nil || len(got) != 1 || got[0][1] != long {
		t.Errorf("%d events, %v", len(got), err)
	}
}

func TestAStreamThatBreaksIsAnError(t *testing.T) {
	broken := errors.New("broken")
	got, err := collect(io.MultiReader(strings.NewReader("data: 1\n\ndata: 2"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestAnEventWithoutAnEndCostsBoundedMemory(t *testing.T) {
	in := NewReader(strings.NewReader(strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", 10_000)), lines.Short, 1<<20)
	if _, err := in.Next(); !errors.Is(err, lines.ErrTooLong) {
		t.Errorf("got %v", err)
	}
}

func TestReaderKeepsLastEventIDAndRetryDelay(t *testing.T) {
	in := NewReader(strings.NewReader("id: 7\nretry: 250\ndata: a\n\nid: \x00\nretry: soon\ndata: b\n\nid\ndata: c\n\n"), lines.Short, 1<<10)
	for _, want := range []string{"7", "7", ""} {
		if _, err := in.Next(); err != nil || in.LastID != want || in.Retry != 250*time.Millisecond {
			t.Errorf("id %q, retry %v, want id %q; %v", in.LastID, in.Retry, want, err)
		}
	}
}

// The server would continue after the event that did not arrive.
func TestTheIDOfATruncatedEventDoesNotCount(t *testing.T) {
	for _, cut := range []string{"id: 2\ndata: {\"half", "id: 2\ndata: whole\n", "id: 2\n", "id: 2"} {
		in := NewReader(strings.NewReader("id: 1\ndata: one\n\n"+cut), lines.Short, 1<<10)
		if ev, err := in.Next(); err != nil || string(ev.Data) != "one" {
			t.Fatalf("%q, %v", ev.Data, err)
		}
		if _, err := in.Next(); err == nil || in.LastID != "1" {
			t.Errorf("after %q the last id is %q; %v", cut, in.LastID, err)
		}
	}
	in := NewReader(strings.NewReader("id: 1\n\n"), lines.Short, 1<<10) // without data
	if _, err := in.Next(); err == nil || in.LastID != "1" {
		t.Errorf("the last id is %q; %v", in.LastID, err)
	}
}

func TestResponseStartsWithItsFirstEvent(t *testing.T) {
	rec := httptest.NewRecorder()
	asked := 0
	out := Writer{W: rec, Within: func(n int) time.Duration { asked += n; return time.Minute }}
	if out.Begun() || len(rec.Header()) != 0 {
		t.Error("it began by itself")
	}
	for _, err := range []error{out.Retry(3 * time.Second), out.Beat(), out.Event("batch", "1", []byte(`{"a":`), []byte("1}")), out.Event("changed", "")} {
		if err != nil {
			t.Error(err)
		}
	}
	out.End()
	const want = "retry: 3000\n\n: alive\n\nevent: batch\nid: 1\ndata: {\"a\":1}\n\nevent: changed\ndata: \n\n"
	if got := rec.Body.String(); got != want || asked != len(want) || !rec.Flushed || !out.Begun() {
		t.Errorf("%d bytes timed; %q", asked, got)
	}
	if h := rec.Header(); h.Get("Content-Type") != "text/event-stream" || h.Get("X-Accel-Buffering") != "no" {
		t.Errorf("%v", h)
	}
}

// broken is a lost connection.
type broken struct{ http.ResponseWriter }

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriteToADisconnectedClientIsAnError(t *testing.T) {
	out := Writer{W: broken{httptest.NewRecorder()}, Within: func(int) time.Duration { return time.Minute }}
	if err := out.Beat(); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

func TestALargeBufferIsNotKept(t *testing.T) {
	out := Writer{W: httptest.NewRecorder(), Within: func(int) time.Duration { return time.Minute }}
	if err := out.Event("e", "", make([]byte, 1<<20)); err != nil || out.buf != nil {
		t.Errorf("%d bytes are kept; %v", cap(out.buf), err)
	}
}

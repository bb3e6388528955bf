package cli

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func collect(r io.Reader) (events [][2]string, err error) {
	err = readEvents(r, func(e event) error {
		events = append(events, [2]string{e.name, string(e.data)})
		return nil
	})
	return events, err
}

func TestAStreamIsReadWhateverItsLineEnds(t *testing.T) {
	stream := "\ufeff: hello\n\nevent: progress\nid: 7\nretry: 1\ndata: {\"a\":\ndata:  1}\n\ndata:x\n\ndata\n\nevent: nothing\n\n\nevent: late\ndata: cut off"
	want := [][2]string{{"progress", "{\"a\":\n 1}"}, {"message", "x"}, {"message", ""}}
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

func TestALongLineOfAStreamIsWhole(t *testing.T) {
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

func FuzzEvents(f *testing.F) {
	f.Add("event: a\ndata: b\n\n")
	f.Add("data: a\r\rdata: b\r\n\r\n:\r\r\n")
	f.Add("data\r\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		once, err := collect(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		again, err := collect(iotest.OneByteReader(strings.NewReader(text)))
		if diff := cmp.Diff(once, again); diff != "" || err != nil {
			t.Fatalf("read in pieces it is another stream: %v\n%s", err, diff)
		}
		unified, err := collect(strings.NewReader(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)))
		if err != nil || !cmp.Equal(once, unified) {
			t.Fatalf("with other line ends it is another stream: %q", text)
		}
	})
}

// silent is a front door that begins a stream and then says nothing.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	body := &silence{ctx: r.Context(), first: strings.NewReader(": alive\n\n")}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}, nil
}

type silence struct {
	ctx   context.Context
	first io.Reader
}

func (s *silence) Read(p []byte) (int, error) {
	if n, err := s.first.Read(p); err == nil {
		return n, nil
	}
	<-s.ctx.Done()
	return 0, context.Cause(s.ctx)
}

func (s *silence) Close() error { return nil }

func TestAStreamWithoutASignOfLifeIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &client{base: "http://door", http: &http.Client{Transport: silent{}}}
		began := time.Now()
		err := c.stream(t.Context(), request{method: http.MethodGet, path: "/events"}, func(event) error { return nil })
		if exitCode(err) != exitUnreachable || !strings.Contains(err.Error(), "went silent") || time.Since(began) != quietMost {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

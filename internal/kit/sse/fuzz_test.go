package sse

import (
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func FuzzEventsDoNotDependOnChunksOrLineEnds(f *testing.F) {
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

// FuzzEventsMatchAReferenceParser compares with a line-by-line parser that follows the
// HTML standard literally.
func FuzzEventsMatchAReferenceParser(f *testing.F) {
	for _, seed := range []string{
		"data: a\n\n", "data:a\ndata: b\n\ndata:  c\n\n", ": c\nevent: x\nid: 1\nretry: 5\ndata: d\n\n", "data\n\ndata: x",
		"id: 7\ndata:\n\ndata: y\r\n\r\n", "event: a\n\ndata: b\n\n", "\n\n\n", "dataa: x\n\n", "id: \x00\ndata: z\n\n", "\ufeffdata: a\r\rdata: b\r", "data: a\n\r",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want [][2]string
		var name string
		var data []string
		whole := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(text, "\ufeff"))
		for line := range strings.Lines(whole) {
			line, ended := strings.CutSuffix(line, "\n")
			if !ended {
				break // a truncated event is dropped
			}
			if line == "" {
				if data != nil {
					want = append(want, [2]string{name, strings.Join(data, "\n")})
				}
				name, data = "", nil
				continue
			}
			field, value, _ := strings.Cut(line, ":")
			value = strings.TrimPrefix(value, " ")
			switch field {
			case "data":
				data = append(data, value)
			case "event":
				name = value
			}
		}
		got, err := collect(iotest.OneByteReader(strings.NewReader(text)))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("events of %q: %v (-want +got):\n%s", text, err, diff)
		}
	})
}

func FuzzEventDataRoundTrips(f *testing.F) {
	f.Add([]byte("{\"a\":\r\n1,\n\r2}"))
	f.Add([]byte("\n\n"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := collect(strings.NewReader(string(appendEvent(nil, "e", "1", data))))
		want := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data))
		if err != nil || !cmp.Equal(got, [][2]string{{"e", want}}) {
			t.Errorf("%q came out as %q; %v", data, got, err)
		}
	})
}

package lines

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestLinesAreReadWholeFromAnyReader(t *testing.T) {
	want := []string{"one", "", strings.Repeat("long", 100_000), "four", strings.Repeat("x", 3<<20), "six", "no end"}
	text := strings.Join(want, "\r\n")
	for name, from := range map[string]io.Reader{
		"whole": strings.NewReader(text), "halves": iotest.HalfReader(strings.NewReader(text)),
		"late error": iotest.DataErrReader(strings.NewReader(text)),
	} {
		for _, size := range []int{Short, Long} {
			in := NewReader(from, size, 4<<20)
			if s, ok := from.(*strings.Reader); ok {
				s.Reset(text)
			}
			for i, w := range want {
				got, err := in.Next()
				if err != nil || string(got) != w {
					t.Fatalf("%s: line %d has %d bytes, want %d; %v", name, i, len(got), len(w), err)
				}
			}
			if _, err := in.Next(); err != io.EOF {
				t.Errorf("%s: the end is %v", name, err)
			}
			if name != "whole" {
				break
			}
		}
	}
}

// endless is a line without an end.
type endless struct{ given int }

func (e *endless) Read(p []byte) (int, error) {
	e.given += len(p)
	return len(p), nil
}

func TestALineWithoutAnEndCostsBoundedMemory(t *testing.T) {
	var from endless
	in := NewReader(&from, Long, 1<<20)
	if _, err := in.Next(); !errors.Is(err, ErrTooLong) {
		t.Errorf("got %v", err)
	}
	if from.given > 2<<20 || len(in.buf) > 2<<20 {
		t.Errorf("read %d bytes into a buffer of %d for a limit of %d", from.given, len(in.buf), 1<<20)
	}
}

func TestALineThatIsTooLongCanBeSkipped(t *testing.T) {
	const most = 100 << 10
	for name, size := range map[string]int{"in one read": 2 * most, "in many reads": 2 << 20} {
		long := "begin" + strings.Repeat("x", size) + "end"
		in := NewReader(iotest.HalfReader(strings.NewReader("one\n"+long+"\ntwo\n")), Short, most)
		for _, want := range []string{"one", "", "two"} {
			got, err := in.Next()
			if want != "" {
				if err != nil || string(got) != want {
					t.Fatalf("%s: %q, %v, want %q", name, got, err, want)
				}
				continue
			}
			if !errors.Is(err, ErrTooLong) {
				t.Fatalf("%s: %v", name, err)
			}
			head, tail, err := in.Skip(4 << 20)
			if err != nil || len(head) != skipEnds || len(tail) != skipEnds || !strings.HasPrefix(string(head), "beginx") || !strings.HasSuffix(string(tail), "xend") {
				t.Errorf("%s: %q … %q, %v", name, head, tail, err)
			}
		}
	}
	for name, from := range map[string]io.Reader{"endless": new(endless), "cut": strings.NewReader(strings.Repeat("x", 2<<20))} {
		in := NewReader(from, Long, 1<<20)
		if _, err := in.Next(); !errors.Is(err, ErrTooLong) {
			t.Fatal(err)
		}
		want := map[string]error{"endless": ErrTooLong, "cut": io.EOF}[name]
		if head, tail, err := in.Skip(4 << 20); !errors.Is(err, want) || len(head) != skipEnds || tail != nil {
			t.Errorf("%s: %d and %d bytes, %v", name, len(head), len(tail), err)
		}
	}
}

package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestActivityIsOneLineOfTheTerminal(t *testing.T) {
	at := time.Unix(1000, 0)
	for _, c := range []struct {
		width, done, total int
		alike              bool
		want               string
	}{
		{80, 1, 2, false, "############............  1 of 2  9s  starting servers"},
		{80, 3, 12, true, "######..................  3 of 12  9s  27s left  starting servers"},
		{80, 0, 12, true, "........................  0 of 12  9s  starting servers"},
		{80, 0, 0, false, "9s  starting servers"},
		{40, 1, 2, false, "1 of 2  9s  starting servers"},
		{15, 1, 2, false, "1 of 2  9s  s…"},
	} {
		a := &activity{out: screen{terminal: true, width: c.width}, alike: c.alike, began: at, done: c.done, total: c.total, text: "starting servers", now: func() time.Time { return at.Add(9 * time.Second) }}
		if got := a.line(); got != c.want || columnsOf(got) >= c.width {
			t.Errorf("%d columns: %q, want %q", c.width, got, c.want)
		}
	}
}

func TestTheLogIsPrintedAboveTheActivity(t *testing.T) {
	var b bytes.Buffer
	a := newActivity(screen{w: &b, terminal: true, width: 80})
	a.step(0, 0, "starting NATS")
	if _, err := a.Write([]byte("a line of the log\n")); err != nil {
		t.Fatal(err)
	}
	a.end()
	a.end()
	const wipe = "\r\x1b[K"
	if got := b.String(); !strings.HasPrefix(got, wipe+"0s  starting NATS"+wipe+"a line of the log\n"+wipe+"0s  starting NATS") || !strings.HasSuffix(got, wipe) {
		t.Errorf("%q", got)
	}
}

func TestNoActivityIsDrawnWithoutATerminal(t *testing.T) {
	var b bytes.Buffer
	a := newActivity(screen{w: &b})
	a.step(1, 2, "starting NATS")
	if _, err := a.Write([]byte("a line of the log\n")); err != nil {
		t.Fatal(err)
	}
	a.end()
	if b.String() != "a line of the log\n" {
		t.Errorf("%q", b.String())
	}
}

func TestWithoutATerminalEachActivityIsPrintedOnce(t *testing.T) {
	var b bytes.Buffer
	a := newActivity(screen{w: &b})
	a.plain = true
	for done := range 3 {
		a.step(done, 3, "creating streams")
	}
	a.step(0, 0, "building the benchmark")
	a.end()
	if got, want := b.String(), "creating streams\nbuilding the benchmark\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

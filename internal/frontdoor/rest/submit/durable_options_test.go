package submit

import (
	"testing"
	"time"
)

func TestPreferHeaderFollowsRFC7240(t *testing.T) {
	for _, c := range []struct {
		headers []string
		async   bool
		wait    time.Duration
	}{
		{nil, false, -1},
		{[]string{"respond-async"}, true, -1},
		{[]string{"Respond-Async; x=1"}, true, -1},
		{[]string{"wait=10"}, false, 10 * time.Second},
		{[]string{`wait="10"`}, false, 10 * time.Second},
		{[]string{"respond-async, wait=100"}, true, 100 * time.Second},
		{[]string{"handling=lenient", "respond-async", "wait = 3"}, true, 3 * time.Second},
		{[]string{"wait=1, wait=2"}, false, time.Second},
		{[]string{"wait=-1"}, false, -1},
		{[]string{"wait=soon"}, false, -1},
		{[]string{"wait"}, false, -1},
		{[]string{"respond-asynchronously"}, false, -1},
		{[]string{"wait=0"}, false, 0},
		{[]string{"wait=99999999999999999999"}, false, -1},
	} {
		got := preferred(c.headers)
		if got.async != c.async || got.waits != (c.wait >= 0) || got.waits && got.wait != c.wait {
			t.Errorf("%q: got %+v", c.headers, got)
		}
		if got.durable() != (c.async || c.wait >= 0) {
			t.Errorf("%q: durable is %v", c.headers, got.durable())
		}
	}
}

func FuzzPreferNeverPanics(f *testing.F) {
	for _, s := range []string{"respond-async, wait=10", `wait="`, ",,;;==", "wait=\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if p := preferred([]string{s}); p.wait < 0 {
			t.Errorf("%q: wait is %v", s, p.wait)
		}
	})
}

package webhook

import (
	"testing"
	"time"
)

func TestRetryScheduleHasBoundedJitter(t *testing.T) {
	schedule := defaultSchedule()
	for i, d := range schedule {
		least, more := wait(schedule, i+1, 0, 0)
		most, _ := wait(schedule, i+1, 0, 0.999999)
		if !more || least != d || most < d || most > d+d/5 {
			t.Errorf("after attempt %d: %v to %v, want %v and a fifth more", i+1, least, most, d)
		}
		if asked, _ := wait(schedule, i+1, 48*time.Hour, 0); asked != max(d, 24*time.Hour) {
			t.Errorf("after attempt %d a receiver can ask for %v", i+1, asked)
		}
		if asked, _ := wait(schedule, i+1, time.Millisecond, 0); asked != d {
			t.Errorf("after attempt %d a receiver can ask for as little as %v", i+1, asked)
		}
	}
	if _, more := wait(schedule, len(schedule)+1, 0, 0); more {
		t.Error("the last attempt is followed by another")
	}
	if _, more := wait([]time.Duration{}, 1, 0, 0); more {
		t.Error("an empty schedule has a second attempt")
	}
}

func TestResponseStatusDecidesTheOutcome(t *testing.T) {
	for code, want := range map[int]Outcome{
		200: Delivered, 202: Delivered, 204: Delivered, 299: Delivered,
		301: Dead, 304: Dead, 400: Dead, 401: Dead, 403: Dead, 404: Dead, 410: Dead, 422: Dead, 100: Dead,
		408: Retried, 425: Retried, 429: Retried, 500: Retried, 501: Retried, 502: Retried, 503: Retried, 504: Retried, 599: Retried,
	} {
		v := judge(answer{status: code}, defaultSchedule(), 1, 0)
		if v.outcome != want || (v.reason == "") != (want == Delivered) {
			t.Errorf("%d: %+v, want %s", code, v, want)
		}
	}
	if v := judge(answer{status: 500}, defaultSchedule(), 8, 0); v.outcome != Dead {
		t.Errorf("the last attempt: %+v", v)
	}
	if v := judge(answer{status: 429, retryAfter: 20 * time.Hour}, defaultSchedule(), 1, 0); v.after != 20*time.Hour || v.pause != time.Hour {
		t.Errorf("a long Retry-After: %+v", v)
	}
	// An answer of 2xx that never came counts for nothing.
	if v := judge(answer{status: 200, reason: "It broke."}, defaultSchedule(), 1, 0); v.outcome != Retried {
		t.Errorf("%+v", v)
	}
}

func FuzzStateRoundTrip(f *testing.F) {
	f.Add(state{V: stateVersion, URL: "https://a.example/", Receiver: "a.example:443", Type: "a.b"}.encode())
	f.Add([]byte(`{"v":2}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeState(b)
		if err != nil {
			return
		}
		again, err := decodeState(s.encode())
		if err != nil || string(again.encode()) != string(s.encode()) {
			t.Errorf("%q: %+v, %v", b, again, err)
		}
	})
}

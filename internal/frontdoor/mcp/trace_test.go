package mcp

import "testing"

func TestBaggageIsForwardedOnlyIfAllowed(t *testing.T) {
	for allowed, want := range map[bool]string{false: `{"example.org/kept":1}`, true: `{"baggage":"a=b","example.org/kept":1}`} {
		m := readMeta([]byte(`{"baggage":"a=b","traceparent":"x","example.org/kept":1}`), allowed)
		if got := string(m.forwarded(nil, "")); got != want {
			t.Errorf("allowed %v: %s, want %s", allowed, got, want)
		}
	}
}

package batch

import "testing"

func TestTraceFlagsDecideSampling(t *testing.T) {
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-"
	for flags, want := range map[string]bool{"00": false, "01": true, "02": false, "03": true, "ff": true} {
		if got := sampled(parent + flags); got != want {
			t.Errorf("flags %s: %t", flags, got)
		}
	}
	if sampled("") {
		t.Error("no trace is sampled")
	}
}

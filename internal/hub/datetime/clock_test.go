package datetime

import (
	"testing"

	"github.com/callyard/callyard/internal/launch/native"
)

// TestClockOfACallReplacesTheMachineClock also checks that calls without a clock still use the
// clock of the machine.
func TestClockOfACallReplacesTheMachineClock(t *testing.T) {
	c := at("2026-07-01T22:30:45Z")
	for told, want := range map[string]string{
		"":                          "2026-07-01T22:30:45+00:00",
		"2020-01-31T12:00:00+02:00": "2020-01-31T10:00:00+00:00",
	} {
		call := &native.Call{Clock: told}
		for range 2 {
			if got, err := c.now(t.Context(), call, nowArguments{}); err != nil || got != want {
				t.Errorf("%q: %s, %v; want %s", told, got, err, want)
			}
		}
		day, err := c.convert(t.Context(), call, convertArguments{"12:00", "UTC", "UTC"})
		if err != nil || day.SourceTime[:10] != want[:10] {
			t.Errorf("%q: %+v, %v", told, day, err)
		}
	}
}

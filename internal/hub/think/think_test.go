package think

import (
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestThoughtReplyMatchesTheReference(t *testing.T) {
	for want, in := range map[string]arguments{
		"[thinking] recorded":        {Thought: "x"},
		"[reasoning] probe recorded": {Mode: "reasoning", Focus: "probe", Thought: strings.Repeat("long ", 100_000)},
		"[planning] recorded":        {Mode: "planning"},
	} {
		if got, err := think(t.Context(), nil, in); err != nil || got != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	if _, err := think(t.Context(), nil, arguments{Focus: strings.Repeat("x", maxLabel+1)}); err == nil || !strings.Contains(err.Error(), "put the text into thought_process") {
		t.Error(err)
	}
}

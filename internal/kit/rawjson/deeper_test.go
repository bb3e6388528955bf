package rawjson

import (
	"strings"
	"testing"
)

func TestNestingDeeperThanMaxIsDetected(t *testing.T) {
	open, end := strings.Repeat("[", MaxNesting), strings.Repeat("]", MaxNesting)
	for text, want := range map[string]bool{
		"": false, "no json": false, open + end: false, "[" + open + end + "]": true, `{"a":` + open: true,
		`"[` + open + `"`: false, `"\"[` + open + `"`: false, strings.Repeat("[]", 2*MaxNesting): false,
		`"\\"` + "[" + open: true,
	} {
		if got := ExceedsDepth([]byte(text), MaxNesting); got != want {
			t.Errorf("%.20q…: %t", text, got)
		}
	}
}

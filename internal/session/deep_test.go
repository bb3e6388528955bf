package session

import (
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/kit/rawjson"
)

func TestOnlyWhatNestsDeeperThanIsReadIsCalledTooDeep(t *testing.T) {
	open, end := strings.Repeat("[", rawjson.MaxNesting), strings.Repeat("]", rawjson.MaxNesting)
	for text, want := range map[string]bool{
		"": false, "no json": false, open + end: false, "[" + open + end + "]": true, `{"a":` + open: true,
		`"[` + open + `"`: false, `"\"[` + open + `"`: false, strings.Repeat("[]", 2*rawjson.MaxNesting): false,
		`"\\"` + "[" + open: true,
	} {
		if got := tooDeep([]byte(text)); got != want {
			t.Errorf("%.20q…: %t", text, got)
		}
	}
}

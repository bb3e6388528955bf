package worker

import (
	"strings"
	"testing"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

func TestOnlyToolCallsOfListeningCallersHaveTheirOwnSession(t *testing.T) {
	whole := bus.CallFrame{Server: "s", Tool: "t", Session: "ROOM", Hears: true}
	if !(&asking{}).takes(&whole) {
		t.Error("a call of a caller that hears was not taken")
	}
	if (*asking)(nil).takes(&whole) {
		t.Error("a server that may not ask has sessions for callers")
	}
	for name, change := range map[string]func(*bus.CallFrame){
		"deaf":           func(f *bus.CallFrame) { f.Hears = false },
		"no session":     func(f *bus.CallFrame) { f.Session = "" },
		"a long session": func(f *bus.CallFrame) { f.Session = strings.Repeat("x", maxSessionName+1) },
		"approved":       func(f *bus.CallFrame) { f.Approval = "appr_1" },
		"a resource":     func(f *bus.CallFrame) { f.Method = schema.MethodReadResource },
	} {
		f := whole
		if change(&f); (&asking{}).takes(&f) {
			t.Errorf("%s: it was taken", name)
		}
	}
}

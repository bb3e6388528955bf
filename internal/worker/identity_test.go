package worker

import (
	"testing"

	"github.com/callyard/callyard/pkg/bus"
)

// TestStateOfACallerIsKeptPerTenant compares the names under which sessions and the state of servers
// are kept.
func TestStateOfACallerIsKeptPerTenant(t *testing.T) {
	of := map[string]bool{}
	frames := []bus.CallFrame{{Principal: "ann"}, {Principal: "ann", Tenant: "red"}, {Principal: "ann", Tenant: "blue"}, {Principal: "ann", Session: "s"}, {Principal: "ann", Tenant: "red", Session: "s"}, {Principal: "red/ann"}, {Principal: "red/ann", Tenant: "red"}}
	for i := range frames {
		of[conversation(&frames[i])] = true
	}
	if len(of) != len(frames) {
		t.Errorf("conversations are shared: %v", of)
	}
	clear(of)
	for i := range frames[:3] {
		of[identity(&frames[i])] = true
	}
	if len(of) != 3 || conversation(&frames[0]) != "ann" {
		t.Errorf("callers are taken for each other: %v", of)
	}
}

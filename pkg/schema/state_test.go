package schema

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestDocumentedStateTransitionsMatchTheTable(t *testing.T) {
	page, err := os.ReadFile("../../docs/explanation/call-lifecycle.md")
	if err != nil {
		t.Fatal(err)
	}
	word := regexp.MustCompile("`([a-z]+)`")
	seen := make(map[State]bool)
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 5 {
			continue
		}
		name := word.FindStringSubmatch(cells[1])
		if name == nil || !State(name[1]).Known() {
			continue
		}
		from := State(name[1])
		seen[from] = true
		var next []State
		for _, m := range word.FindAllStringSubmatch(cells[3], -1) {
			next = append(next, State(m[1]))
		}
		if !slices.Equal(next, moves(from)) {
			t.Errorf("%s: the page says %v, the table %v", from, next, moves(from))
		}
	}
	for _, s := range States() {
		if !seen[s] {
			t.Errorf("%s is not on the page", s)
		}
	}
}

func TestFinalStatesNeverChange(t *testing.T) {
	for _, s := range []State{StateDenied, StateExpired, StateCanceled, StateSucceeded} {
		for _, to := range States() {
			if s.MayBecome(to) {
				t.Errorf("%s may become %s", s, to)
			}
		}
	}
}

func TestEveryStateIsReachedAndEveryCallCanEnd(t *testing.T) {
	reached := map[State]bool{StateHeld: true, StateQueued: true, StateRunning: true} // the initial states of calls
	for _, s := range States() {
		for _, to := range moves(s) {
			reached[to] = true
			if !to.Known() {
				t.Errorf("%s may become %q, which is no state", s, to)
			}
		}
		if !s.Ended() && !slices.ContainsFunc(moves(s), State.Ended) {
			t.Errorf("a call that is %s can never end", s)
		}
	}
	for _, s := range States() {
		if !reached[s] {
			t.Errorf("nothing becomes %s", s)
		}
	}
	if State("lost").Known() || State("lost").Ended() {
		t.Error("a word that is no state counts as one")
	}
}

func TestStateTransitions(t *testing.T) {
	for _, c := range []struct {
		from, to State
		may      bool
	}{
		{StateHeld, StateQueued, true},
		{StateHeld, StateSuspended, false}, // it has not run
		{StateQueued, StateHeld, true},     // the policy was changed
		{StateQueued, StateSuspended, false},
		{StateRunning, StateSuspended, true},
		{StateRunning, StateQueued, true}, // another attempt
		{StateRunning, StateHeld, false},
		{StateSuspended, StateRunning, true},
		{StateSuspended, StateSucceeded, false}, // it must be answered first
		{StateSuspended, StateDenied, false},
		{StateUnknown, StateSucceeded, true}, // a person settles it
		{StateUnknown, StateDenied, false},
		{StateFailed, StateQueued, true},
		{StateFailed, StateCanceled, false},
		{StateFailed, StateUnknown, false}, // a known outcome does not become unknown
		{"", StateQueued, false},
		{StateHeld, "", false},
	} {
		if c.from.MayBecome(c.to) != c.may {
			t.Errorf("%q to %q: %v, want %v", c.from, c.to, !c.may, c.may)
		}
	}
	for _, s := range States() {
		if s.MayBecome(s) && s != StateFailed {
			t.Errorf("%s may become itself", s)
		}
	}
}

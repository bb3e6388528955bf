package todo

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/launch/native"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func session(name string) *native.Call { return &native.Call{Session: name} }

func TestAThousandSessionsNeverSeeEachOthersLists(t *testing.T) {
	s := newStore(time.Now)
	var wg sync.WaitGroup
	for n := range 1000 {
		wg.Go(func() {
			name := fmt.Sprintf("session-%d", n)
			for round := range 5 {
				want := fmt.Sprintf("[a] task %d of %s (done)", round, name)
				if _, err := s.update(t.Context(), session(name), updateArguments{Todos: []string{want}}); err != nil {
					t.Error(err)
				}
				if got, err := s.list(t.Context(), session(name), listArguments{}); err != nil || got != want {
					t.Errorf("%s has %q, %v", name, got, err)
				}
			}
		})
	}
	wg.Wait()
	if len(s.entries) != 1000 || s.order.Len() != 1000 {
		t.Errorf("%d lists are kept", len(s.entries))
	}
}

func TestLeastRecentlyUsedListIsDropped(t *testing.T) {
	s := newStore(time.Now)
	for n := range maxSessions {
		s.put(fmt.Sprint(n), []item{{"a", "b", "done"}})
	}
	s.get("0")
	s.put("one more", []item{{"a", "b", "done"}})
	if s.get("0") == nil || s.get("1") != nil || s.get("2") == nil || s.order.Len() != maxSessions {
		t.Errorf("another list than the second was dropped; %d are kept", s.order.Len())
	}
}

func TestTheTextsOfAllSessionsAreBounded(t *testing.T) {
	s := newStore(time.Now)
	big := []item{{"a", strings.Repeat("x", 1<<20), "done"}}
	for n := range 100 {
		s.put(fmt.Sprint(n), big)
	}
	if s.bytes > maxBytes || s.order.Len() < 60 || s.get("99") == nil {
		t.Errorf("%d bytes in %d lists", s.bytes, s.order.Len())
	}
	for n := range 100 {
		s.put(fmt.Sprint(n), nil)
	}
	if s.bytes != 0 || len(s.entries) != 0 {
		t.Errorf("%d bytes are counted of %d lists", s.bytes, len(s.entries))
	}
}

func TestAListThatIsNotUsedForADayIsDropped(t *testing.T) {
	now := time.Unix(0, 0)
	s := newStore(func() time.Time { return now })
	s.put("a", []item{{"a", "b", "done"}})
	s.put("b", []item{{"a", "b", "done"}})
	now = now.Add(maxIdle - time.Second)
	s.get("b")
	now = now.Add(2 * time.Second)
	if s.get("a") != nil || s.get("b") == nil {
		t.Error("a stays or b goes")
	}
}

func TestFormatsMatchTheReference(t *testing.T) {
	s := newStore(time.Now)
	todos := []string{"[setup] Configure | it (planned)", "  [fix] Résolve (a) thing (in_progress) "}
	for format, want := range map[string]string{
		"":         "todo list updated",
		"simple":   "todo list updated",
		"markdown": "| id | task | status |\n| --- | --- | --- |\n| setup | Configure \\| it | planned |\n| fix | Résolve (a) thing | pending |",
		"ascii":    "+-------+-------------------+---------+\n| ID    | TASK              | STATUS  |\n+-------+-------------------+---------+\n| setup | Configure | it    | planned |\n| fix   | Résolve (a) thing | pending |\n+-------+-------------------+---------+",
	} {
		if got, err := s.update(t.Context(), session("s"), updateArguments{todos, format}); err != nil || got != want {
			t.Errorf("%s:\n%s\n%v; want\n%s", format, got, err, want)
		}
	}
	if got, err := s.update(t.Context(), session("s"), updateArguments{Todos: []string{}}); err != nil || got != "todo list cleared" {
		t.Error(got, err)
	}
	if got, err := s.list(t.Context(), session("s"), listArguments{}); err != nil || got != "No todos" {
		t.Error(got, err)
	}
}

func TestInvalidUpdateKeepsThePreviousList(t *testing.T) {
	s := newStore(time.Now)
	s.put("s", []item{{"a", "b", "done"}})
	for want, in := range map[string]updateArguments{
		"task 2: the status \"doing\" is not one of": {Todos: []string{"[a] b (done)", "[a] b (doing)"}},
		"task 1: \"b\" has another form; write":      {Todos: []string{"b"}},
		"has 1500 bytes":                             {Todos: []string{strings.Repeat("x", 1500)}},
		"has 201 tasks":                              {Todos: make([]string, 201)},
		"no format \"html\"":                         {Todos: []string{"[a] c (done)"}, Format: "html"},
	} {
		if _, err := s.update(t.Context(), session("s"), in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if got, _ := s.list(t.Context(), session("s"), listArguments{}); got != "[a] b (done)" {
		t.Error(got)
	}
	if _, err := s.update(t.Context(), session(""), updateArguments{}); err == nil {
		t.Error("a list without a session is kept")
	}
	if _, err := s.list(t.Context(), session(""), listArguments{}); err == nil {
		t.Error("a list without a session is shown")
	}
}

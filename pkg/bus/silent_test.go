package bus_test

import (
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// A frozen server keeps its share of the direct reads until the others notice.
func TestReadsAreSentAgainIfAReplicaIsFrozen(t *testing.T) {
	defer bus.SetSilentFor(20 * time.Millisecond)()
	srv := bustest.Start(t)
	s, err := bus.OpenStream(t.Context(), srv.Connect(t, "reader"), bus.StreamSpec{
		Name: bus.StreamExecutions, What: "call records", Subjects: []string{bus.SubjectRecord + "*.*"}, Logs: true, Ranges: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	const subject = bus.SubjectRecord + "0.1"
	for range 3 {
		if _, err := s.Put(t.Context(), bus.Message{Subject: subject, Data: []byte("one")}); err != nil {
			t.Fatal(err)
		}
	}
	unanswered := srv.Freeze(t, bus.StreamExecutions)
	failed := 0
	for range 20 {
		if found, _, err := s.Read(t.Context(), subject, 1, 10, 1<<20); err != nil || len(found) != 3 {
			failed++
			t.Logf("%d messages, %v", len(found), err)
		}
		if _, err := s.Next(t.Context(), subject, 1, bus.Replica); err != nil {
			failed++
			t.Log(err)
		}
	}
	if failed > 4 { // one of 243 can fail; without further requests it is one of 3
		t.Errorf("%d of 40 reads failed", failed)
	}
	if unanswered() == 0 {
		t.Error("every request was answered, so the test shows nothing")
	}
}

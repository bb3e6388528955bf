package stories

import (
	"testing"

	callyard "github.com/callyard/callyard/clients/go"
)

func TestUnsafeCallOfKilledWorkerEndsUnknownAndIsNotRetried(t *testing.T) {
	f := sharedFabric(t)
	c, l := caller(t, f, f.URL()), newLedger(t)
	id := stored(t, c, "lab", "effect", l.arguments("unsafe"))
	l.happened(t, "unsafe", 1)
	who := busyWorker(t, c)
	w := part(t, f, who)
	must(t, w.Kill(t.Context()))
	l.open(t)
	end := ended(t, c, id)
	if end.State != callyard.CallStateUnknown || end.Problem == nil {
		t.Errorf("the call ends as %+v", end)
	}
	restartWorker(t, f, c, w, *who)
	if got := l.count(t, "unsafe"); got != 1 {
		t.Errorf("it ran %d times", got)
	}
}

func TestSafeCallOfKilledWorkerIsRetriedByAnother(t *testing.T) {
	f := sharedFabric(t)
	c, l := caller(t, f, f.URL()), newLedger(t)
	id := stored(t, c, "again", "effect", l.arguments("safe"))
	l.happened(t, "safe", 1)
	who := busyWorker(t, c)
	w := part(t, f, who)
	must(t, w.Kill(t.Context()))
	l.happened(t, "safe", 2) // the other worker has run it
	l.open(t)
	end := ended(t, c, id)
	if end.State != callyard.CallStateSucceeded || end.Worker == nil || *end.Worker == *who {
		t.Errorf("the call ends as %+v", end)
	}
	restartWorker(t, f, c, w, *who)
}

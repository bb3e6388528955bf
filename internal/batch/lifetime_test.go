package batch

import (
	"errors"
	"testing"
)

func TestJobReleasesItsJournalOnlyIfAnotherContinues(t *testing.T) {
	for cause, gives := range map[error]bool{errStopped: true, errLost: true, errCanceled: false, errExpired: false, errDamaged: false} {
		life := newLifetime()
		life.halt(cause)
		if life.stopping.Err() == nil || life.gone.Err() != nil {
			t.Errorf("%v: new calls start, or those that left are given up", cause)
		}
		if gave := life.leaving.Err() != nil; gave != gives {
			t.Errorf("%v: the journal is given back: %t", cause, gave)
		}
	}
}

func TestFirstStopCauseWinsUnlessTheJournalIsReleased(t *testing.T) {
	for _, c := range []struct{ first, second, want error }{
		{errCanceled, errExpired, errCanceled},
		{errLost, errCanceled, errLost},
		{errCanceled, errStopped, errStopped}, // some calls that were sent may not be settled
	} {
		life := newLifetime()
		life.halt(c.first)
		life.halt(c.second)
		if got := life.cause(); !errors.Is(got, c.want) {
			t.Errorf("%v, then %v: the cause is %v", c.first, c.second, got)
		}
	}
	if cause := newLifetime().cause(); cause != nil {
		t.Errorf("a job that runs stops because of %v", cause)
	}
}

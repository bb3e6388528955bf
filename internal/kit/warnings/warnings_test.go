package warnings

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/internal/kit/logtest"
)

func TestAFailureThatRepeatsIsLoggedWithGrowingPauses(t *testing.T) {
	var s Spacing
	now := time.Unix(1000, 0)
	var at []time.Duration
	notLogged := 0
	for since := time.Duration(0); since < time.Hour; since += time.Second {
		if n, ok := s.Due(now.Add(since)); ok {
			at = append(at, since)
			notLogged += n
		}
	}
	if len(at) != 17 || at[0] != 0 || at[1] != 5*time.Second || at[2] != 15*time.Second || at[16]-at[15] != lastSilence {
		t.Errorf("logged after %v", at)
	}
	if notLogged+len(at) > 3600 || notLogged < 3000 {
		t.Errorf("%d failures were counted as not logged", notLogged)
	}
}

func TestTheEndOfAnOutageIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text logtest.Log
		log := slog.New(slog.NewTextHandler(&text, nil))
		var s Spacing
		report := func(err error, times int) {
			for range times {
				s.Report(log, err, "reading failed", "reading works again")
				time.Sleep(time.Second)
			}
		}
		report(nil, 3)
		report(errors.New("no answer"), 60)
		report(nil, 3)
		report(errors.New("no answer"), 1)
		if text.Count("reading failed") != 5 || text.Count("reading works again") != 1 || text.Count("not_logged=19") != 1 {
			t.Errorf("the log is:\n%s", text.String())
		}
	})
}

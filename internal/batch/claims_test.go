package batch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/internal/store/journal"
)

// claimedIn counts the claims of a journal in the given time. Each claim ends with f.
func claimedIn(d time.Duration, m *journal.Manifest, f func(*claim)) (n int) {
	all := make(claims)
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(adoptEvery) {
		if c, due := all.next(m); due {
			n++
			f(c)
		}
		all.prune()
	}
	return n
}

func TestJournalThatCannotEndIsClaimedLessAndLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if n := claimedIn(time.Hour, &journal.Manifest{ID: "batch_1"}, func(*claim) {}); n < 100 || n > 130 {
			t.Errorf("it was claimed %d times in an hour", n)
		}
	})
}

func TestJournalWithNewResultsIsClaimedAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &journal.Manifest{ID: "batch_1"}
		if n := claimedIn(time.Minute, m, func(*claim) { m.Counts.Succeeded++ }); n != 60 {
			t.Errorf("it was claimed %d times in a minute", n)
		}
	})
}

func TestClaimsContinueSoonAfterAnOutageOfNATS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if n := claimedIn(time.Hour, &journal.Manifest{ID: "batch_1"}, func(c *claim) { c.noAnswer = true }); n < 900 {
			t.Errorf("it was claimed %d times in an hour", n)
		}
	})
}

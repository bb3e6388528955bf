package bus

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// NATS removes expired rows of a table without a notification, so the table itself must drop them.
func TestATableDropsExpiredRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const perHour = 200
		kept, forever := &Table[int]{ttl: 24 * time.Hour, rows: map[string]row[int]{}}, &Table[int]{rows: map[string]row[int]{}}
		written := 0
		for range 30 * 24 {
			for range perHour {
				written++
				for _, table := range []*Table[int]{kept, forever} {
					table.keep(fmt.Sprint(written), row[int]{value: written, revision: uint64(written), at: secondOf(time.Now())})
				}
			}
			time.Sleep(time.Hour)
		}
		if n := len(kept.rows); n > 3*25*perHour {
			t.Errorf("%d rows are in memory, and NATS has %d", n, 24*perHour)
		}
		for n := written - 23*perHour; n <= written; n++ {
			if _, ok := kept.Get(fmt.Sprint(n)); !ok {
				t.Fatalf("row %d of %d is gone", n, written)
			}
		}
		if n := len(forever.rows); n != written {
			t.Errorf("%d of %d rows are left of a table without expiry", n, written)
		}
	})
}

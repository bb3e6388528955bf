package batch

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestCollectorDeliversAllItemsAndEnds(t *testing.T) {
	b, over := newCollector[int](), make(chan struct{})
	const sides, each = 8, 500
	var putting sync.WaitGroup
	for side := range sides {
		putting.Go(func() {
			for i := range each {
				b.put(side*each + i)
			}
		})
	}
	go func() {
		putting.Wait()
		close(over)
	}()
	seen := map[int]bool{}
	for busy := false; ; busy = !busy {
		all := b.take(over, busy)
		if all == nil {
			break
		}
		for _, one := range all {
			if seen[one] {
				t.Fatalf("%d came twice", one)
			}
			seen[one] = true
		}
	}
	if len(seen) != sides*each {
		t.Errorf("%d of %d came", len(seen), sides*each)
	}
}

func TestSignalOfTakenItemsDoesNotShortenTheNextWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, over := newCollector[int](), make(chan struct{})
		for i := range gatherMany {
			b.put(i)
		}
		if all := b.take(over, false); len(all) != gatherMany {
			t.Fatalf("%d of %d came", len(all), gatherMany)
		}
		b.put(0)
		began := time.Now()
		b.take(over, true)
		if waited := time.Since(began); waited != gatherFor {
			t.Errorf("it waited %v for more", waited)
		}
	})
}

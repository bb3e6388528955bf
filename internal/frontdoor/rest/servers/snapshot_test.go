package servers

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestConcurrentStreamsShareOneSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s snapshot
		var made atomic.Int32
		fleet := func() Fleet {
			made.Add(1)
			time.Sleep(time.Millisecond) // advances the fake clock of the bubble, so that others arrive
			return Fleet{}
		}
		for change := range int32(3) {
			var all sync.WaitGroup
			for range 1500 {
				all.Go(func() {
					woken := time.Now()
					if !settle(t.Context()) {
						t.Error("a stream ended")
					}
					if len(s.get(woken, fleet)) == 0 {
						t.Error("a stream got nothing")
					}
				})
			}
			all.Wait()
			if n := made.Load(); n != change+1 {
				t.Errorf("%d pictures were made for %d changes and 1,500 streams", n, change+1)
			}
		}
	})
}

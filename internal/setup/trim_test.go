package setup

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// An idle process returns memory once. A busy process does not, and neither does one without free
// memory.
func TestIdleProcessReturnsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mib = 1 << 20
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		use, given := heapUse{kept: 50 * mib}, 0
		read := func() heapUse {
			mu.Lock()
			defer mu.Unlock()
			return use
		}
		give := func() {
			mu.Lock()
			defer mu.Unlock()
			given++
			use.kept = 15 * mib
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			trim(ctx, read, give)
		}()
		after := func(what string, allocated, kept uint64, want int) {
			t.Helper()
			time.Sleep(time.Millisecond) // between two checks
			synctest.Wait()
			mu.Lock()
			use.allocated += allocated
			use.kept += kept
			mu.Unlock()
			time.Sleep(trimEvery)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if given != want {
				t.Errorf("%s: given back %d times, want %d", what, given, want)
			}
		}
		after("busy", 30*mib, 0, 0)
		after("idle", mib, 0, 1)
		after("idle, little is kept", mib, mib, 1)
		after("busy again", 100*mib, 30*mib, 1)
		after("idle again", 0, 0, 2)
		after("still idle", 0, 0, 2)
		cancel()
		<-done
	})
}

func TestTheHeapCanBeRead(t *testing.T) {
	if use := readHeap(); use.allocated == 0 || use.kept == 0 {
		t.Errorf("the heap reads as %+v", use)
	}
}

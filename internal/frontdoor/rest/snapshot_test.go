package rest

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestStreamsThatAreWokenTogetherShareOnePicture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s snapshot
		var made atomic.Int32
		release := make(chan struct{})
		fleet := func() Fleet {
			made.Add(1)
			<-release
			return Fleet{}
		}
		var all sync.WaitGroup
		for range 1500 {
			all.Go(func() {
				if len(s.get(fleet)) == 0 {
					t.Error("a stream got nothing")
				}
			})
		}
		synctest.Wait() // one is being made, one waits, and all others wait for that
		close(release)
		all.Wait()
		if n := made.Load(); n != 2 {
			t.Errorf("%d pictures were made for 1,500 streams", n)
		}
		s.get(fleet)
		if n := made.Load(); n != 3 {
			t.Errorf("who comes later is shown an old one: %d were made", n)
		}
	})
}

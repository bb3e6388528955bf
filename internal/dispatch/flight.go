package dispatch

import (
	"sync"

	"github.com/callyard/callyard/pkg/schema"
)

// flight is a call in [Router.Do] that waits, runs, or is about to be sent again, or an
// asynchronous call.
type flight struct {
	id   schema.CallID
	stop chan struct{} // closed, under the shard's lock, when the call is cancelled by its id
	// async is set for a call without a goroutine that waits in Do.
	async *AsyncCall
}

// stopped reports whether the call was cancelled by its id.
func (f *flight) stopped() bool {
	select {
	case <-f.stop:
		return true
	default:
		return false
	}
}

// flightShards is the number of locks, so that concurrent calls seldom wait for the same one.
const flightShards = 16

// flights finds calls by id. If two calls have the same id, it finds the later one. It is safe for
// concurrent use.
type flights struct {
	shards [flightShards]struct {
		mu    sync.Mutex
		calls map[schema.CallID]*flight
	}
	free sync.Pool // of *flight that were not cancelled
}

// shard selects a shard by the end of the id, which is random.
func shard(id schema.CallID) int {
	if id == "" {
		return 0
	}
	return int(id[len(id)-1]) % flightShards
}

func (fs *flights) add(id schema.CallID) *flight { return fs.addAsync(id, nil) }

func (fs *flights) addAsync(id schema.CallID, p *AsyncCall) *flight {
	f, _ := fs.free.Get().(*flight)
	if f == nil {
		f = &flight{stop: make(chan struct{})}
	}
	f.id, f.async = id, p
	s := &fs.shards[shard(id)]
	s.mu.Lock()
	if s.calls == nil {
		s.calls = make(map[schema.CallID]*flight)
	}
	s.calls[id] = f
	s.mu.Unlock()
	return f
}

// remove removes a flight. f must not be used afterwards.
func (fs *flights) remove(f *flight) {
	s := &fs.shards[shard(f.id)]
	s.mu.Lock()
	if s.calls[f.id] == f {
		delete(s.calls, f.id)
	}
	s.mu.Unlock()
	if !f.stopped() {
		f.async = nil
		fs.free.Put(f)
	}
}

// cancel ends the call id, and reports whether it was here.
func (fs *flights) cancel(id schema.CallID) bool {
	f := fs.takeOut(id)
	if f == nil {
		return false
	}
	if p := f.async; p != nil {
		p.cancelByID()
	}
	return true
}

func (fs *flights) takeOut(id schema.CallID) *flight {
	s := &fs.shards[shard(id)]
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.calls[id]
	if f != nil {
		delete(s.calls, id)
		close(f.stop)
	}
	return f
}

// overdue returns the asynchronous calls whose answers were due before at, a time of the router's clock.
func (fs *flights) overdue(at int64) (late []*AsyncCall) {
	for i := range fs.shards {
		s := &fs.shards[i]
		s.mu.Lock()
		for _, f := range s.calls {
			if f.async == nil {
				continue
			}
			if due := f.async.due.Load(); due != 0 && due < at {
				late = append(late, f.async)
			}
		}
		s.mu.Unlock()
	}
	return late
}

package episode

import (
	"sync"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// lostFor is the time for which new episodes avoid a worker at which a call found nobody. It is
// longer than the time after which the catalog drops a worker that is silent.
const lostFor = 30 * time.Second

// lostWorkers holds the workers at which a call found nobody. The catalog lists a killed worker for
// some seconds more. Without this list, episodes that open no lease, and so do not notice, would
// begin there all that time, fail at once, and so outnumber those that can succeed.
type lostWorkers struct {
	mu    sync.Mutex
	since map[schema.WorkerID]time.Time
}

func (l *lostWorkers) add(w schema.WorkerID, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since == nil {
		l.since = make(map[schema.WorkerID]time.Time)
	}
	for known, at := range l.since {
		if now.Sub(at) >= lostFor {
			delete(l.since, known)
		}
	}
	l.since[w] = now
}

// avoid returns the first of the workers, from index first on, that is not lost. If all are, it
// returns the one at first.
func (l *lostWorkers) avoid(workers []schema.Worker, first int, now time.Time) schema.WorkerID {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range workers {
		id := workers[(first+i)%len(workers)].ID
		if at, lost := l.since[id]; !lost || now.Sub(at) >= lostFor {
			return id
		}
	}
	return workers[first].ID
}

package batch

import (
	"slices"
	"sync"

	"github.com/callyard/callyard/pkg/schema"
)

const (
	// absentMost and absentName limit the number and the length of the missing server names that a
	// batch reports.
	absentMost = 20
	absentName = 128
)

// unannounced counts the calls of a journal that wait for servers that no worker has announced. The
// names may be mistyped, but a worker may also announce them at any moment, so the calls wait.
// It is safe for concurrent use.
type unannounced struct {
	mu    sync.Mutex
	calls map[schema.ServerID]int
}

// note records whether a call waits for a missing server.
func (a *unannounced) note(server schema.ServerID, t *retryState, waits bool) {
	if waits == t.absent {
		return
	}
	t.absent = waits
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calls == nil {
		a.calls = make(map[schema.ServerID]int)
	}
	if waits {
		a.calls[server]++
	} else if a.calls[server]--; a.calls[server] == 0 {
		delete(a.calls, server)
	}
}

// servers returns the names of missing servers, sorted and limited to absentMost.
func (a *unannounced) servers() (all []schema.ServerID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id := range a.calls {
		if len(id) <= absentName {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return all[:min(len(all), absentMost)]
}

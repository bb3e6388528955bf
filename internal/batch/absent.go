package batch

import (
	"slices"
	"sync"

	"github.com/callyard/callyard/pkg/schema"
)

const (
	// absentMost and absentName bound what a batch names of the servers that are not there.
	absentMost = 20
	absentName = 128
)

// absent counts the calls of a journal that wait for servers which no worker has announced. Their
// names may be mistyped, but nobody can know that: a worker may announce them in a moment. It
// is safe for concurrent use.
type absent struct {
	mu    sync.Mutex
	calls map[schema.ServerID]int
}

// note notes whether a call waits for a server that is not there.
func (a *absent) note(server schema.ServerID, t *tries, waits bool) {
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

// servers returns the first of the servers by name.
func (a *absent) servers() (all []schema.ServerID) {
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

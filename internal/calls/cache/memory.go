package cache

import (
	"bytes"
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// entryCost is the approximate overhead of an entry, in bytes.
const entryCost = 256

// memory is an LRU cache in this process.
type memory struct {
	most int

	mu    sync.Mutex
	size  int
	index map[key]*list.Element
	order list.List // of *entry, most recently used first
}

type entry struct {
	key  key
	body []byte
	at   time.Time
	till time.Time
}

func newMemory(most int) *memory { return &memory{most: most, index: make(map[key]*list.Element)} }

func (m *memory) get(_ context.Context, k key) ([]byte, time.Time, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.index[k]
	if at == nil {
		return nil, time.Time{}, false
	}
	e := at.Value.(*entry)
	if !time.Now().Before(e.till) {
		m.dropLocked(at)
		return nil, time.Time{}, false
	}
	m.order.MoveToFront(at)
	return e.body, e.at, true
}

func (m *memory) put(_ context.Context, _ schema.TenantID, k key, body []byte, ttl time.Duration) bool {
	if len(body)+entryCost > m.most {
		return false
	}
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if was := m.index[k]; was != nil {
		m.dropLocked(was)
	}
	// Clone, because body may be a part of a larger message, which must not be retained.
	m.index[k] = m.order.PushFront(&entry{k, bytes.Clone(body), now, now.Add(ttl)})
	for m.size += len(body) + entryCost; m.size > m.most; {
		m.dropLocked(m.order.Back())
	}
	return true
}

// clear drops everything.
func (m *memory) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.index)
	m.order.Init()
	m.size = 0
}

func (m *memory) dropLocked(at *list.Element) {
	e := m.order.Remove(at).(*entry)
	m.size -= len(e.body) + entryCost
	delete(m.index, e.key)
}

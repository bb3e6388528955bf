package batch

import (
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// aheadCalls and aheadBytes (of arguments) limit the read-ahead of a journal.
	aheadCalls = 16_384
	aheadBytes = 8 << 20
)

// readAhead buffers calls that were read and have not begun, in a queue for each server. It
// releases several calls to one server in a row: the server is woken once for all of them, and
// with hundreds of servers the wake-ups are most of the cost of a call. The servers take turns;
// the calls of one server stay in order. It is not safe for concurrent use.
type readAhead struct {
	queues map[schema.ServerID]*serverQueue
	turn   []*serverQueue // queues with calls, in the order of their turns
	calls  int
	bytes  int
}

type serverQueue struct {
	server schema.ServerID
	calls  []*journal.CallRecord
}

func newReadAhead() *readAhead { return &readAhead{queues: make(map[schema.ServerID]*serverQueue)} }

// put adds a call.
func (b *readAhead) put(c *journal.CallRecord) {
	q := b.queues[c.Server]
	if q == nil {
		q = &serverQueue{server: c.Server}
		b.queues[c.Server] = q
	}
	if len(q.calls) == 0 {
		b.turn = append(b.turn, q)
	}
	q.calls = append(q.calls, c)
	b.calls++
	b.bytes += len(c.Arguments)
}

// short reports whether reading more may lengthen the next run. run returns the number of calls
// in a row that a server is given.
func (b *readAhead) short(run func(server schema.ServerID) int) bool {
	if b.calls >= aheadCalls || b.bytes >= aheadBytes {
		return false
	}
	return b.calls == 0 || len(b.turn[0].calls) < run(b.turn[0].server)
}

// take removes and returns the calls of the next run, or nil if there are none.
func (b *readAhead) take(run func(server schema.ServerID) int) []*journal.CallRecord {
	if b.calls == 0 {
		return nil
	}
	q := b.turn[0]
	b.turn = b.turn[1:]
	n := min(len(q.calls), max(1, run(q.server)))
	calls := q.calls[:n:n]
	if q.calls = q.calls[n:]; len(q.calls) > 0 {
		b.turn = append(b.turn, q)
	} else {
		delete(b.queues, q.server)
	}
	b.calls -= n
	for _, c := range calls {
		b.bytes -= len(c.Arguments)
	}
	return calls
}

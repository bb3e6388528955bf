package batch

import "github.com/callyard/callyard/internal/ledger/journal"

const (
	// shelfCalls and shelfBytes (of arguments) are how much of a journal is read ahead.
	shelfCalls = 16_384
	shelfBytes = 8 << 20
)

// shelf keeps calls that were read and have not begun, a pile for each server. Calls to
// one server leave in runs: it is woken once for all of them, which with hundreds of
// servers is most of what a call costs. The servers take turns; those of one server
// stay in their order. It is not safe for concurrent use.
type shelf struct {
	piles map[string]*pile
	turn  []*pile // those with calls; the first one's turn it is
	calls int
	bytes int
}

type pile struct {
	server string
	calls  []*journal.CallRecord
}

func newShelf() *shelf { return &shelf{piles: make(map[string]*pile)} }

// put adds a call.
func (s *shelf) put(c *journal.CallRecord) {
	p := s.piles[c.Server]
	if p == nil {
		p = &pile{server: c.Server}
		s.piles[c.Server] = p
	}
	if len(p.calls) == 0 {
		s.turn = append(s.turn, p)
	}
	p.calls = append(p.calls, c)
	s.calls++
	s.bytes += len(c.Arguments)
}

// short says that reading on may make the next run longer. run is how many calls in a
// row a server is given.
func (s *shelf) short(run func(server string) int) bool {
	if s.calls >= shelfCalls || s.bytes >= shelfBytes {
		return false
	}
	return s.calls == 0 || len(s.turn[0].calls) < run(s.turn[0].server)
}

// take takes out the calls whose turn it is; nil means that there are none.
func (s *shelf) take(run func(server string) int) []*journal.CallRecord {
	if s.calls == 0 {
		return nil
	}
	p := s.turn[0]
	s.turn = s.turn[1:]
	n := min(len(p.calls), max(1, run(p.server)))
	calls := p.calls[:n:n]
	if p.calls = p.calls[n:]; len(p.calls) > 0 {
		s.turn = append(s.turn, p)
	} else {
		delete(s.piles, p.server)
	}
	s.calls -= n
	for _, c := range calls {
		s.bytes -= len(c.Arguments)
	}
	return calls
}

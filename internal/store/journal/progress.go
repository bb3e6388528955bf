package journal

import (
	"maps"
	"math/bits"
	"sync"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// maxIndex limits the memory that a damaged record can cause.
const maxIndex = 1 << 28

// OpenIntent is a call that has an intent but no result.
type OpenIntent struct {
	Attempt int
	// Worker is the target worker, or "" if it is unknown.
	Worker schema.WorkerID
	// At is the time at which the message with the intent was written.
	At time.Time
}

// Progress holds the outcome of each call of a journal. It uses a bit per call, and an entry per call
// that is open, unknown, dead, or ordered to run again.
type Progress struct {
	mu         sync.Mutex
	accepted   uint64
	ended      []uint64 // a bit per index
	odd        map[uint64]EffectiveOutcome
	open       map[uint64]OpenIntent
	counts     [outcomeCount]uint64
	toolErrors uint64
}

func newProgress(accepted uint64) *Progress {
	return &Progress{accepted: accepted, odd: map[uint64]EffectiveOutcome{}, open: map[uint64]OpenIntent{}, ended: make([]uint64, 0, (min(accepted, maxIndex)+63)/64)}
}

// know records that the call with the index was accepted. A later record proves that, even if the
// record of the call itself is lost.
func (p *Progress) know(index uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if index < maxIndex {
		p.accepted = max(p.accepted, index+1)
	}
}

// stored applies a result that was read from the log.
func (p *Progress) stored(m Mark) {
	p.know(m.Index)
	p.apply(m)
}

// previousState is the state before a record was applied.
type previousState struct {
	index     uint64
	was       EffectiveOutcome
	open      OpenIntent
	hadOpen   bool
	toolError bool
}

// apply applies a record and reports whether it counts.
func (p *Progress) apply(m Mark) (previousState, bool) {
	u := previousState{index: m.Index}
	if m.Index >= maxIndex {
		return u, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.odd[m.Index]
	if now.Outcome == 0 && p.bit(m.Index) {
		return u, false // most calls end once, and only their bit is kept
	}
	next, counts := Judge(now, m)
	if !counts {
		return u, false
	}
	u.was, u.toolError = now, next.Outcome == Succeeded && m.ToolError
	u.open, u.hadOpen = p.open[m.Index]
	p.stand(m.Index, now, next)
	if u.toolError {
		p.toolErrors++
	}
	delete(p.open, m.Index)
	return u, true
}

// stand changes the standing of a call from now to next.
func (p *Progress) stand(i uint64, now, next EffectiveOutcome) {
	if now.Outcome != 0 {
		p.counts[now.Outcome]--
	}
	if next.Outcome != 0 {
		p.counts[next.Outcome]++
		p.set(i)
	} else {
		p.ended[i/64] &^= 1 << (i % 64)
	}
	if next.Open() || next.Outcome == 0 && next.Attempt > 0 {
		p.odd[i] = next
	} else {
		delete(p.odd, i)
	}
}

// revert undoes a record that was applied but could not be stored.
func (p *Progress) revert(u previousState, m Mark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next, _ := Judge(u.was, m)
	p.stand(u.index, next, u.was)
	if u.toolError {
		p.toolErrors--
	}
	if u.hadOpen {
		p.open[u.index] = u.open
	}
}

func (p *Progress) bit(i uint64) bool {
	return i/64 < uint64(len(p.ended)) && p.ended[i/64]&(1<<(i%64)) != 0
}

func (p *Progress) set(i uint64) {
	for uint64(len(p.ended)) <= i/64 {
		p.ended = append(p.ended, 0)
	}
	p.ended[i/64] |= 1 << (i % 64)
}

// intent applies an intent that was read from the log.
func (p *Progress) intent(h *Head, r *IntentRecord) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range r.Ranges {
		for i := g.First; i < g.First+g.Count && i < p.accepted; i++ {
			switch {
			case p.bit(i), p.odd[i].Attempt > 0 && r.Attempt <= p.odd[i].Attempt:
			case r.Void:
				delete(p.open, i)
			default:
				p.open[i] = OpenIntent{Attempt: r.Attempt, Worker: r.Worker, At: h.At}
			}
		}
	}
}

// Accepted returns the number of calls at the claim. It includes calls whose records are lost but which
// the manifest, an intent or a result refers to.
func (p *Progress) Accepted() uint64 { return p.accepted }

// Ended reports whether a call has a result that counts and is not to run again.
func (p *Progress) Ended(index uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bit(index)
}

// Next returns the first index, starting at the given one, of a call that has not ended.
func (p *Progress) Next(index uint64) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := index / 64; w < uint64(len(p.ended)); w++ {
		free := ^p.ended[w]
		if w == index/64 {
			free &^= 1<<(index%64) - 1
		}
		if free != 0 {
			return w*64 + uint64(bits.TrailingZeros64(free))
		}
	}
	return max(index, uint64(len(p.ended))*64)
}

// Counts returns the number of calls by outcome.
func (p *Progress) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &p.counts
	return Counts{
		Succeeded: c[Succeeded], Failed: c[Failed], Denied: c[Denied], Expired: c[Expired],
		Canceled: c[Canceled], Unknown: c[Unknown], Dead: c[Dead], ToolErrors: p.toolErrors,
	}
}

// Open returns the calls that had an intent and no result at the claim, and still have no result.
func (p *Progress) Open() map[uint64]OpenIntent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.open)
}

// Standing returns the standing of a call that is unknown, dead, or ordered to run again. It is zero
// for all other calls, ended or not.
func (p *Progress) Standing(index uint64) EffectiveOutcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.odd[index]
}

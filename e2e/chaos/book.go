package chaos

import (
	"fmt"
	"sync"
	"time"
)

// told is what a client was told of one of its calls.
type told struct {
	// ID is the id under which the call was accepted, "" while it was not.
	ID string
	// Effect is what its tool writes down.
	Effect string
	// digest is that of the arguments of a single call, as the execution log has it.
	digest string
	Safe   bool
	Batch  string // "" for a single call
	// State is how it ended, "" while it has not.
	State string
	// Canceled says that its client asked for its end while it was under way.
	Canceled bool
	// Results is how many ends of it were told: lines of results of a batch.
	Results int
	// Lost says that the call was accepted, and then nobody knew it.
	Lost bool
	// cancelAfter is when its client cancels it, 0 for never.
	cancelAfter time.Duration
	// Extra says that the call does not count: it is of the batch that is canceled.
	Extra bool
}

// scar is a fault that struck, and how the fleet got over it.
type scar struct {
	Kind   Kind `json:"kind"`
	Victim int  `json:"victim"`
	// At is when it struck, from the beginning on.
	At time.Duration `json:"at"`
	// InFlight is how many calls were under way; of these Singles were single ones.
	InFlight int `json:"in_flight"`
	Singles  int `json:"singles"`
	// Begun is how many calls began until the victim was up again, of faults that last.
	Begun int `json:"begun,omitempty"`
	// Back is how long it took until the victim was up again; Serving until a call
	// that was sent after the fault had succeeded; Settled until all single calls
	// that were under way had ended. 0 means never.
	Back    time.Duration `json:"back"`
	Serving time.Duration `json:"serving"`
	Settled time.Duration `json:"settled"`

	pending int
	from    int // calls that had begun
}

// point is a moment of the campaign.
type point struct {
	At       time.Duration `json:"at"`
	Ended    int           `json:"ended"`
	Unknown  int           `json:"unknown"`
	InFlight int           `json:"in_flight"`
}

// book is what the clients and the faults wrote down. It is safe for concurrent use.
type book struct {
	mu       sync.Mutex
	born     time.Time
	calls    []*told
	scars    []*scar
	points   []point
	findings []string
	odd      map[string]int // answers that no client should get, and how often
	ended    int
	unknown  int
	singles  int // under way
	lines    int // of batches, under way
	peak     int
}

func newBook() *book { return &book{born: time.Now(), odd: map[string]int{}} }

const maxFindings = 200

// find writes down what does not fit.
func (b *book) find(format string, a ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.findings) < maxFindings {
		b.findings = append(b.findings, fmt.Sprintf(format, a...))
	}
}

// unexpected counts an answer that no client should get.
func (b *book) unexpected(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.odd[what]++
}

// begin writes down that a client sends a single call.
func (b *book) begin(t *told) (at time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, t)
	b.singles++
	b.peak = max(b.peak, b.singles+b.lines)
	return time.Since(b.born)
}

// accepted writes down that a call has an id. One call has one.
func (b *book) accepted(t *told, id string) {
	b.mu.Lock()
	was := t.ID
	t.ID = id
	b.mu.Unlock()
	if was != "" && was != id {
		b.find("the call of %s was accepted twice under one key: as %s and as %s", t.Effect, was, id)
	}
}

// all returns the calls of the book.
func (b *book) all() []*told {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

// canceled writes down that a client asks for the end of a call.
func (b *book) canceled(t *told) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t.Canceled = true
}

// over writes down how a single call ended, "" for not at all.
func (b *book) over(t *told, state string, began time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.singles--
	if state == "" {
		return
	}
	now := time.Since(b.born)
	t.State = state
	t.Results++
	b.count(t, state)
	for i := len(b.scars) - 1; i >= 0; i-- {
		s := b.scars[i]
		if s.At < began {
			if s.Serving != 0 {
				break // those before are served too
			}
			if state == "succeeded" {
				s.Serving = now - s.At
			}
			continue
		}
		if s.pending--; s.pending == 0 {
			s.Settled = now - s.At
		}
	}
}

func (b *book) count(t *told, state string) {
	if t.Extra {
		return
	}
	b.ended++
	if state == "unknown" {
		b.unknown++
	}
}

// sent writes down that lines of a batch were sent.
func (b *book) sent(ts []*told) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, ts...)
	b.lines += len(ts)
	b.peak = max(b.peak, b.singles+b.lines)
}

// line writes down a line of results.
func (b *book) line(t *told, id, state string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.Results++; t.Results == 1 {
		t.ID = id
		b.lines--
		b.count(t, state)
	}
	t.State = state
}

// strike writes down that a fault strikes now.
func (b *book) strike(f Fault) *scar {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &scar{Kind: f.Kind, Victim: f.Victim, At: time.Since(b.born), InFlight: b.singles + b.lines, Singles: b.singles, pending: b.singles, from: len(b.calls)}
	b.scars = append(b.scars, s)
	return s
}

// back writes down that the victim is up again.
func (b *book) back(s *scar) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Back = time.Since(b.born) - s.At
	if s.Kind.lasts() {
		s.Begun = len(b.calls) - s.from
	}
}

func (b *book) progress() (ended, unknown, inFlight int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended, b.unknown, b.singles + b.lines
}

func (b *book) sample() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.points = append(b.points, point{At: time.Since(b.born), Ended: b.ended, Unknown: b.unknown, InFlight: b.singles + b.lines})
}

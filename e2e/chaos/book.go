package chaos

import (
	"fmt"
	"sync"
	"time"
)

// clientCall is the record of a call as its client sees it.
type clientCall struct {
	// ID is the ID under which the call was accepted. It is "" before that.
	ID string
	// Effect is the text that the tool records.
	Effect string
	// digest is the digest of the arguments of a single call, as in the call records.
	digest string
	Safe   bool
	Batch  string // "" for a single call
	// State is the final state, or "" before the call has ended.
	State string
	// Canceled reports that the client canceled the call while it was in flight.
	Canceled bool
	// Results counts the result lines of the call in a batch.
	Results int
	// Lost reports that the call was accepted but later not found.
	Lost bool
	// cancelAfter is the time after which its client cancels it. 0 means never.
	cancelAfter time.Duration
	// Extra excludes the call from the counts, because it belongs to the canceled batch.
	Extra bool
}

// recovery is the record of a fault and of the recovery of the fleet.
type recovery struct {
	Kind   Kind `json:"kind"`
	Victim int  `json:"victim"`
	// At is the time of the fault since the start of the campaign.
	At time.Duration `json:"at"`
	// InFlight is the number of calls in flight, and Singles the number of single calls among them.
	InFlight int `json:"in_flight"`
	Singles  int `json:"singles"`
	// Begun is the number of calls that began until the victim was up again, for faults that last.
	Begun int `json:"begun,omitempty"`
	// Back is the time until the victim was up again, Serving the time until a call
	// that was sent after the fault had succeeded, and Settled the time until all single calls
	// in flight had ended. 0 means never.
	Back    time.Duration `json:"back"`
	Serving time.Duration `json:"serving"`
	Settled time.Duration `json:"settled"`

	pending int
	from    int // number of calls that had begun
}

// point is a data point of the campaign.
type point struct {
	At       time.Duration `json:"at"`
	Ended    int           `json:"ended"`
	Unknown  int           `json:"unknown"`
	InFlight int           `json:"in_flight"`
}

// book holds the records of the clients and the faults. It is safe for concurrent use.
type book struct {
	mu       sync.Mutex
	born     time.Time
	calls    []*clientCall
	scars    []*recovery
	points   []point
	findings []string
	odd      map[string]int // counts of answers that no client should get
	ended    int
	unknown  int
	singles  int // in flight
	lines    int // of batches, in flight
	peak     int
}

func newBook() *book { return &book{born: time.Now(), odd: map[string]int{}} }

const maxFindings = 200

// find records a finding.
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

// begin records that a client sends a single call.
func (b *book) begin(t *clientCall) (at time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, t)
	b.singles++
	b.peak = max(b.peak, b.singles+b.lines)
	return time.Since(b.born)
}

// accepted records the ID of a call. A call must have only one.
func (b *book) accepted(t *clientCall, id string) {
	b.mu.Lock()
	was := t.ID
	t.ID = id
	b.mu.Unlock()
	if was != "" && was != id {
		b.find("the call of %s was accepted twice under one key: as %s and as %s", t.Effect, was, id)
	}
}

// all returns the calls of the book.
func (b *book) all() []*clientCall {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

// canceled records that a client cancels a call.
func (b *book) canceled(t *clientCall) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t.Canceled = true
}

// over records the final state of a single call, "" if it did not end.
func (b *book) over(t *clientCall, state string, began time.Duration) {
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
				break // earlier ones have a value too
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

func (b *book) count(t *clientCall, state string) {
	if t.Extra {
		return
	}
	b.ended++
	if state == "unknown" {
		b.unknown++
	}
}

// sent records that lines of a batch were sent.
func (b *book) sent(ts []*clientCall) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, ts...)
	b.lines += len(ts)
	b.peak = max(b.peak, b.singles+b.lines)
}

// line records a line of results.
func (b *book) line(t *clientCall, id, state string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.Results++; t.Results == 1 {
		t.ID = id
		b.lines--
		b.count(t, state)
	}
	t.State = state
}

// strike records that a fault strikes now.
func (b *book) strike(f Fault) *recovery {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &recovery{Kind: f.Kind, Victim: f.Victim, At: time.Since(b.born), InFlight: b.singles + b.lines, Singles: b.singles, pending: b.singles, from: len(b.calls)}
	b.scars = append(b.scars, s)
	return s
}

// back records that the victim is up again.
func (b *book) back(s *recovery) {
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

package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/bus"
)

// Report is the result of [Reader.Verify].
type Report struct {
	Writers  int `json:"writers"`
	Messages int `json:"messages"`
	Records  int `json:"records"`
	// Trimmed lists the writers whose first records were removed by age, which is allowed.
	Trimmed []string `json:"trimmed,omitempty"`
	// Faults lists a limited number of faults; Count counts all.
	Faults []Fault `json:"faults,omitempty"`
	Count  int     `json:"fault_count"`
}

// OK reports whether there are no faults.
func (r *Report) OK() bool { return r.Count == 0 }

// Fault is a place where the record differs from what was written.
type Fault struct {
	Writer string `json:"writer"`
	// Sequence is that of the message in the stream, or 0 if the fault is in no message.
	Sequence uint64 `json:"sequence,omitempty"`
	// Seq is that of the record in its chain, or 0 if it cannot be read.
	Seq uint64 `json:"seq,omitempty"`
	// Kind is the kind of tampering, as far as it can be determined.
	Kind FaultKind `json:"kind"`
	What string    `json:"what"`
}

// FaultKind is a kind of tampering.
type FaultKind string

const (
	Changed FaultKind = "changed" // a record differs from what was written
	Gap     FaultKind = "gap"     // records are missing in the middle, or at the start
	CutTail FaultKind = "cut"     // records are missing at the end
	Added   FaultKind = "added"   // records were inserted that the writer did not write there
)

const (
	maxFaults = 1000
	// slack is the tolerance for clock differences when age is checked.
	slack = time.Minute
)

// Verify reads every stored record and returns the faults. It may run while records are written.
func (l *Reader) Verify(ctx context.Context) (*Report, error) {
	// Read the heads first: the records that they name are already in the stream.
	heads, err := l.store.heads.All(ctx)
	if err != nil {
		return nil, err
	}
	c := newChecker(heads, l.store.s.MaxAge(), time.Now())
	for next := uint64(1); ; {
		m, err := l.store.next(ctx, next)
		if errors.Is(err, bus.ErrNotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
		c.message(m)
		next = m.Sequence + 1
	}
	// A chain that started after the heads were read has a head now.
	later, err := l.store.heads.All(ctx)
	if err != nil {
		return nil, err
	}
	return c.finish(later), nil
}

// checker checks messages in stream order.
type checker struct {
	heads  map[string]*Head // by token
	chains map[string]*checked
	last   uint64
	maxAge time.Duration
	now    time.Time
	report Report
}

// checked is the last checked record of a chain.
type checked struct {
	seq  uint64
	hash string
}

func newChecker(heads map[string][]byte, maxAge time.Duration, now time.Time) *checker {
	c := &checker{chains: map[string]*checked{}, maxAge: maxAge, now: now}
	c.readHeads(heads)
	return c
}

func (c *checker) readHeads(heads map[string][]byte) {
	c.heads = map[string]*Head{}
	for _, writer := range sorted(heads) {
		h := new(Head)
		if err := json.Unmarshal(heads[writer], h); err != nil || h.Version != version || bus.Token(h.Writer) != writer || h.Seq == 0 && h.Hash != start() {
			c.fault(Changed, writer, 0, 0, "the head of the chain cannot be read, or belongs to another chain")
			continue
		}
		c.heads[writer] = h
	}
}

// renew replaces the heads by the current ones, to continue after the checked records. A head that names
// the last checked record must match it.
func (c *checker) renew(heads map[string][]byte, now time.Time) {
	c.now = now
	c.readHeads(heads)
	for writer, at := range c.chains {
		if h := c.heads[writer]; h != nil && h.Seq == at.seq && h.Hash != at.hash {
			c.fault(Changed, writer, 0, at.seq, "the head of the chain refers to a different record here")
		}
	}
}

func sorted[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func (c *checker) fault(kind FaultKind, writer string, sequence, seq uint64, format string, args ...any) {
	if sequence == 0 && slices.ContainsFunc(c.report.Faults, func(f Fault) bool { return f.Writer == writer && f.Seq == seq && f.Kind == kind }) {
		return // this wrong head was already known
	}
	if c.report.Count++; len(c.report.Faults) < maxFaults {
		c.report.Faults = append(c.report.Faults, Fault{writer, sequence, seq, kind, fmt.Sprintf(format, args...)})
	}
}

func (c *checker) message(m message) {
	c.report.Messages++
	if m.Sequence <= c.last {
		c.fault(Added, m.Writer, m.Sequence, 0, "the message follows one with sequence %d", c.last)
	}
	c.last = max(c.last, m.Sequence)
	if len(m.Data) == 0 || m.Data[len(m.Data)-1] != '\n' {
		c.fault(Changed, m.Writer, m.Sequence, 0, "the message does not end at the end of a record")
	}
	for line := range bytes.Lines(m.Data) {
		c.report.Records++
		r, err := parseLine(bytes.TrimSuffix(line, []byte{'\n'}))
		if err != nil {
			c.fault(Changed, m.Writer, m.Sequence, 0, "a record was changed: %v", err)
			continue
		}
		c.record(m, r)
	}
}

func (c *checker) record(m message, r *Record) {
	if bus.Token(r.Writer) != m.Writer {
		c.fault(Added, m.Writer, m.Sequence, r.Seq, "the record belongs to the chain %s", r.Writer)
		return
	}
	at := c.chains[m.Writer]
	switch {
	case at == nil && r.Seq != 1 && !c.old(r.Writer):
		c.fault(Gap, m.Writer, m.Sequence, r.Seq, "the chain begins with record %d; the earlier records are missing", r.Seq)
	case at == nil && r.Seq != 1:
		c.report.Trimmed = append(c.report.Trimmed, r.Writer)
	case at == nil && r.Prev != start():
		c.fault(Gap, m.Writer, m.Sequence, r.Seq, "the first record refers to an earlier record")
	case at != nil && r.Seq != at.seq+1:
		c.fault(Gap, m.Writer, m.Sequence, r.Seq, "record %d follows record %d", r.Seq, at.seq)
	case at != nil && r.Prev != at.hash:
		c.fault(Changed, m.Writer, m.Sequence, r.Seq, "the record refers to a missing record")
	}
	if at == nil {
		at = new(checked)
		c.chains[m.Writer] = at
	}
	at.seq, at.hash = r.Seq, r.Hash
	if h := c.heads[m.Writer]; h != nil && h.Seq == r.Seq && h.Hash != r.Hash {
		c.fault(Changed, m.Writer, m.Sequence, r.Seq, "the head of the chain refers to a different record here")
	}
}

// finish compares the ends of the chains with their heads. later holds the current heads.
func (c *checker) finish(later map[string][]byte) *Report {
	for _, writer := range sorted(c.chains) {
		at, h := c.chains[writer], c.heads[writer]
		switch {
		case h == nil && later[writer] == nil:
			c.fault(Added, writer, 0, at.seq, "the chain has no head: the chain was inserted, or its head was removed")
		case h == nil:
		case at.seq < h.Seq:
			c.fault(CutTail, writer, 0, at.seq, "the chain ends with record %d and its head is record %d: the end was removed", at.seq, h.Seq)
		case h.Closed && at.seq > h.Seq:
			c.fault(Added, writer, 0, at.seq, "the chain was closed with record %d but continues to %d", h.Seq, at.seq)
		}
	}
	for _, writer := range sorted(c.heads) {
		h := c.heads[writer]
		if c.chains[writer] != nil || h.Seq == 0 {
			continue
		}
		if c.maxAge > 0 && c.now.Sub(h.At) > c.maxAge-slack {
			c.report.Trimmed = append(c.report.Trimmed, h.Writer)
			continue
		}
		c.fault(CutTail, writer, 0, 0, "the whole chain of %d records is missing", h.Seq)
	}
	c.report.Writers = len(c.chains)
	return &c.report
}

// old reports whether a writer started so long ago that its first records may have expired.
func (c *checker) old(writer string) bool {
	born, ok := writerCreated(writer)
	return ok && c.maxAge > 0 && c.now.Sub(born) > c.maxAge-slack
}

// writerCreated decodes the time in a writer's name; see schema.NewID.
func writerCreated(writer string) (time.Time, bool) {
	tail := writer[strings.LastIndexByte(writer, '_')+1:]
	if len(tail) != 26 {
		return time.Time{}, false
	}
	var v int64
	for i := range 10 { // 50 bits, of which the first 48 are milliseconds
		d := strings.IndexByte("0123456789abcdefghjkmnpqrstvwxyz", tail[i])
		if d < 0 {
			return time.Time{}, false
		}
		v = v<<5 | int64(d)
	}
	return time.UnixMilli(v >> 2), true
}

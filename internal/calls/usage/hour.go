package usage

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/pkg/schema"
)

// Limits of one hour, so that it always fits in a message of 1 MiB.
const (
	maxRows    = 2000
	maxBytes   = 640 << 10 // total of Row.size
	maxTenants = 100       // tenants with a row named Other, in addition
	maxDoors   = 1000      // total entries of count.Doors and count.Owners
)

const version = 1

// hour holds the counts of one hour.
type hour struct {
	number  int64  // in hours since 1970
	epoch   uint64 // epoch of the cursor
	through uint64 // the sequence of the log up to which the rows are complete
	rows    map[Row]*count
	size    int // total size of the rows that are not named Other
	other   int // number of rows named Other
	doors   int
}

// count holds the counts of a row.
type count struct {
	Counts
	// Doors counts, by front door id, the unfinished calls that become unknown if that front
	// door stops.
	Doors map[string]int64 `json:"doors,omitempty"`
	// Owners counts, by front door id, the unfinished calls of journals that no longer count here
	// when that front door owns no journal, because the next owner has a record of its own.
	Owners map[string]int64 `json:"owners,omitempty"`
}

// storedHour and storedRow are the stored form.
type storedHour struct {
	Version int         `json:"v"`
	Hour    int64       `json:"hour"`
	Epoch   uint64      `json:"epoch"`
	Through uint64      `json:"through"`
	Rows    []storedRow `json:"rows"`
}

type storedRow struct {
	Row
	count
}

func newHour(number int64) *hour { return &hour{number: number, rows: map[Row]*count{}} }

// decodeHour decodes a stored hour.
func decodeHour(body []byte) (*hour, error) {
	var s storedHour
	if err := json.Unmarshal(body, &s); err != nil {
		return nil, fmt.Errorf("reading an hour of usage: %w", err)
	}
	if s.Version != version {
		return nil, fmt.Errorf("reading an hour of usage: it has version %d, and this program reads version %d", s.Version, version)
	}
	h := newHour(s.Hour)
	h.epoch, h.through = s.Epoch, s.Through
	for i := range s.Rows {
		h.insert(s.Rows[i].Row, &s.Rows[i].count)
	}
	return h, nil
}

func (h *hour) encode() ([]byte, error) {
	s := storedHour{Version: version, Hour: h.number, Epoch: h.epoch, Through: h.through, Rows: make([]storedRow, 0, len(h.rows))}
	for _, row := range slices.SortedFunc(maps.Keys(h.rows), compareRows) {
		s.Rows = append(s.Rows, storedRow{row, *h.rows[row]})
	}
	return json.Marshal(s)
}

func compareRows(a, b Row) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Principal, b.Principal), cmp.Compare(a.Server, b.Server), cmp.Compare(a.Tool, b.Tool))
}

func (h *hour) insert(row Row, c *count) {
	h.rows[row] = c
	h.doors += len(c.Doors) + len(c.Owners)
	if row == otherOf(row.Tenant) {
		h.other++
	} else {
		h.size += row.size()
	}
}

func otherOf(tenant schema.TenantID) Row { return Row{Tenant: tenant, Principal: Other, Tool: Other} }

// find returns the row in which a call is counted; its count is nil if the row does not exist yet. A
// row that did not fit never fits later, because the rows only grow. So a call is always counted in
// the same row.
func (h *hour) find(row Row) (Row, *count) {
	if c := h.rows[row]; c != nil {
		return row, c
	}
	if row != otherOf(row.Tenant) && len(h.rows)-h.other < maxRows && h.size+row.size() <= maxBytes {
		return row, nil
	}
	row = otherOf(row.Tenant)
	if c := h.rows[row]; c != nil {
		return row, c
	}
	if h.other >= maxTenants {
		row = otherOf(Other)
	}
	return row, h.rows[row]
}

// change replaces the counts of a call: it subtracts before (nil if the call was not counted) and adds
// after. It returns false and changes nothing if the row of before no longer exists.
func (h *hour) change(before, after *records.Record) bool {
	if before != nil {
		_, c := h.find(rowOf(before))
		if c == nil {
			return false
		}
		c.add(countsOf(before), -1)
		h.door(c, before, -1)
	}
	row, c := h.find(rowOf(after))
	if c == nil {
		c = new(count)
		h.insert(row, c)
	}
	c.Add(countsOf(after))
	h.door(c, after, 1)
	return true
}

// door adds n to the unfinished calls of the record's front door, if they change when it stops. If
// there are too many front doors, the call remains unfinished.
func (h *hour) door(c *count, r *records.Record, n int64) {
	doors := &c.Doors
	switch {
	case r.EndsWithFrontDoor():
	case r.ContinuesElsewhere():
		doors = &c.Owners
	default:
		return
	}
	was, ok := (*doors)[r.FrontDoor]
	if !ok && (n < 0 || h.doors >= maxDoors) {
		return
	}
	if *doors == nil {
		*doors = map[string]int64{}
	}
	if !ok {
		h.doors++
	}
	if (*doors)[r.FrontDoor] = was + n; was+n == 0 {
		delete(*doors, r.FrontDoor)
		h.doors--
	}
}

// counts returns the counts. Unfinished calls of front doors that are not alive count as unknown, and
// those of journals not at all if their front door owns none any longer.
func (c *count) counts(alive, owns func(frontDoor string) bool) Counts {
	counts := c.Counts
	for door, n := range c.Doors {
		if !alive(door) {
			counts.Unknown += n
			counts.Unfinished -= n
		}
	}
	for door, n := range c.Owners {
		if !owns(door) {
			counts.Calls -= n
			counts.Unfinished -= n
		}
	}
	return counts
}

package usage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/pkg/bus"
)

// KeepFor is the retention of an hour after its last write.
const KeepFor = 90 * 24 * time.Hour

const (
	streamBytes = 256 << 20
	leastBytes  = 64 << 20 // with less space, usage is not counted: calls need it more
	cursorToken = "cursor"
)

// Streams returns the stream specs of package usage.
func Streams() []bus.StreamSpec {
	return []bus.StreamSpec{{
		Name: bus.StreamUsage, What: "usage by hour", Subjects: []string{bus.SubjectUsage + "*"},
		DropsOldest: true, Compress: true, MaxAge: KeepFor, MaxBytes: streamBytes, MinBytes: leastBytes,
	}}
}

// store stores the hours and the cursor. It is safe for concurrent use.
type store struct{ s *bus.Stream }

// cursor is the position in the log up to which all hours are complete.
type cursor struct {
	Version int `json:"v"`
	// Log is the creation time of the log's stream, in Unix ns. If the log is recreated, or loses
	// messages at its end, its sequences start again, and so does an epoch. In hours of an
	// earlier epoch, everything up to Base was counted.
	Log     int64  `json:"log"`
	Epoch   uint64 `json:"epoch"`
	Base    uint64 `json:"base"`
	Through uint64 `json:"through"`

	revision uint64
}

// follow returns the cursor for a log in this state, and reports whether it changed.
func (c cursor) follow(log records.LogState) (cursor, bool) {
	created := log.Created.UnixNano()
	next := cursor{Version: version, Log: created, Epoch: c.Epoch + 1, revision: c.revision}
	switch {
	case c.Log != created:
	case log.Last < c.Through:
		next.Base, next.Through = log.Last, log.Last
	default:
		return c, false
	}
	return next, true
}

func (s *store) cursor(ctx context.Context) (c cursor, err error) {
	m, err := s.s.Last(ctx, bus.SubjectUsage+cursorToken, bus.Leader)
	if errors.Is(err, bus.ErrNotFound) {
		return cursor{}, nil
	}
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(m.Data, &c); err != nil {
		return c, fmt.Errorf("reading the cursor of usage: %w", err)
	}
	if c.Version != version {
		return c, fmt.Errorf("reading the cursor of usage: it has version %d, and this program reads version %d", c.Version, version)
	}
	c.revision = m.Sequence
	return c, nil
}

// putCursor stores the cursor by compare-and-set.
func (s *store) putCursor(ctx context.Context, c *cursor) error {
	body, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encoding the cursor of usage: %w", err)
	}
	c.revision, err = s.s.PutAfter(ctx, bus.Message{Subject: bus.SubjectUsage + cursorToken, Data: body}, c.revision)
	return err
}

func hourSubject(hour int64) string { return bus.SubjectUsage + strconv.FormatInt(hour, 10) }

// hour reads an hour and its revision. The revision is 0 if the hour does not exist.
func (s *store) hour(ctx context.Context, number int64) (*hour, uint64, error) {
	m, err := s.s.Last(ctx, hourSubject(number), bus.Leader)
	if errors.Is(err, bus.ErrNotFound) {
		return newHour(number), 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	h, err := decodeHour(m.Data)
	return h, m.Sequence, err
}

// putHour stores an hour by compare-and-set.
func (s *store) putHour(ctx context.Context, h *hour, revision uint64) error {
	body, err := h.encode()
	if err != nil {
		return fmt.Errorf("encoding an hour of usage: %w", err)
	}
	_, err = s.s.PutAfter(ctx, bus.Message{Subject: hourSubject(h.number), Data: body}, revision)
	return err
}

// hours returns the numbers of the stored hours in [from, before), sorted.
func (s *store) hours(ctx context.Context, from, before int64) ([]int64, error) {
	subjects, err := s.s.Subjects(ctx, bus.SubjectUsage+"*")
	if err != nil {
		return nil, err
	}
	var hours []int64
	for _, subject := range subjects {
		if n, err := strconv.ParseInt(bus.LastToken(subject), 10, 64); err == nil && n >= from && n < before {
			hours = append(hours, n)
		}
	}
	slices.Sort(hours)
	return hours, nil
}

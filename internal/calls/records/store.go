package records

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/callyard/callyard/pkg/bus"
)

// slotTime is the time range of one subject of the log. The NATS server uses about 290 bytes of
// memory per subject, so a day that is never idle takes 2.5 MB (8,640 slots), regardless of the
// number of front doors.
const slotTime = 10 * time.Second

// slotsOfHour is the number of slots that share the first token of their subjects, so that one
// request finds those in use.
const slotsOfHour = int64(time.Hour / slotTime)

const (
	// readBytes and readCount limit the response to one read request, except that its last
	// message may exceed readBytes. While the server responds, the stream accepts no writes.
	readBytes = 1 << 20
	readCount = 1000
	// leastBytes is the smallest stream size to try if the server does not have the requested
	// space.
	leastBytes = 8 << 20
)

// Streams returns the specs of the call record streams. The log is lossy: the newest records replace
// the oldest.
func Streams() []bus.StreamSpec {
	return []bus.StreamSpec{{
		Name: bus.StreamExecutions, What: "call records", Subjects: []string{bus.SubjectRecord + "*.*"},
		Logs: true, DropsOldest: true, Ranges: true,
		MaxAge: keepFor, MaxBytes: streamBytes, MinBytes: leastBytes,
	}}
}

// store stores and reads messages of records by time slot. It is safe for concurrent use.
type store struct{ s *bus.Stream }

func openStore(ctx context.Context, c *bus.Conn) (*store, error) {
	s, err := bus.OpenStream(ctx, c, Streams()[0])
	if err != nil {
		return nil, err
	}
	return &store{s}, nil
}

// slotOf returns the slot of a time.
func slotOf(t time.Time) int64 { return t.Unix() / int64(slotTime/time.Second) }

func slotSubject(slot int64) string {
	return bus.SubjectRecord + strconv.FormatInt(slot/slotsOfHour, 10) + "." + strconv.FormatInt(slot, 10)
}

// maxBody returns the maximum size of one message body in bytes.
func (s *store) maxBody() int { return s.s.MaxMessage() - 1<<10 }

// append stores a message in a slot and waits for the acknowledgment. It returns [bus.ErrTooLarge]
// for a message that this server never accepts.
func (s *store) append(ctx context.Context, slot int64, data []byte) error {
	_, err := s.s.Put(ctx, bus.Message{Subject: slotSubject(slot), Data: data})
	return err
}

// slots returns slots before the given one that hold messages, newest first. It returns at least the
// newest of them, and none only if there are none.
func (s *store) slots(ctx context.Context, before int64) ([]int64, error) {
	if before <= 0 {
		return nil, nil
	}
	hour := strconv.FormatInt((before-1)/slotsOfHour, 10)
	slots, err := s.fitting(ctx, bus.SubjectRecord+hour+".*", before)
	if err == nil && len(slots) == 0 {
		// A busy log never gets here; in a quiet one the whole list is short.
		slots, err = s.fitting(ctx, bus.SubjectRecord+"*.*", before)
	}
	return slots, err
}

func (s *store) fitting(ctx context.Context, filter string, before int64) ([]int64, error) {
	subjects, err := s.s.Subjects(ctx, filter)
	if err != nil {
		return nil, err
	}
	slots := make([]int64, 0, len(subjects))
	for _, subject := range subjects {
		if slot, err := strconv.ParseInt(bus.LastToken(subject), 10, 64); err == nil && slot < before {
			slots = append(slots, slot)
		}
	}
	slices.Sort(slots)
	slices.Reverse(slots)
	return slots, nil
}

// read calls f with the messages of a slot in stored order, starting at the sequence from. It reads at
// most that number of messages (0 means all), and returns the number read. f may keep the data. A
// replica that lags may not have the last messages yet.
func (s *store) read(ctx context.Context, slot int64, from uint64, most int, f func(sequence uint64, data []byte)) (int, error) {
	for total := 0; ; {
		batch := readCount
		if most > 0 {
			batch = min(batch, most-total)
		}
		found, more, err := s.s.Read(ctx, slotSubject(slot), from, batch, readBytes)
		for _, m := range found {
			f(m.Sequence, m.Data)
			from = m.Sequence + 1
		}
		if total += len(found); err != nil || !more || total == most {
			return total, err
		}
	}
}

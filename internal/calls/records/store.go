package records

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/callyard/callyard/pkg/bus"
)

// slotTime is the time that shares one subject of the log. The NATS server keeps about
// 290 bytes of memory for a subject, so a day that is never idle takes 2.5 MB (8,640
// slots), whatever the number of front doors.
const slotTime = 10 * time.Second

// slotsOfHour is how many slots share the first token of their subjects, so that one
// question finds those in use.
const slotsOfHour = int64(time.Hour / slotTime)

const (
	// readBytes and readCount are what one question to the log answers at most, but for
	// its last message. While it answers, the stream takes no writes.
	readBytes = 1 << 20
	readCount = 1000
	// leastBytes is the smallest bound that is tried where the server has not the space
	// for the one asked for.
	leastBytes = 8 << 20
)

// Streams are the streams of the call records, by what [Options] says of them. It is a
// log and no promise: the newest records replace the oldest.
func (o Options) Streams() []bus.StreamSpec {
	return []bus.StreamSpec{{
		Name: bus.StreamExecutions, What: "call records", Subjects: []string{bus.SubjectRecord + "*.*"},
		Logs: true, DropsOldest: true, Ranges: true,
		MaxAge: max(cmp.Or(o.MaxAge, defaultMaxAge), 0), MaxBytes: max(cmp.Or(o.MaxBytes, defaultMaxBytes), 0), MinBytes: leastBytes,
	}}
}

// store is the stored messages of records, by slots of time. All methods are safe for
// concurrent use.
type store struct{ s *bus.Stream }

func openStore(ctx context.Context, c *bus.Conn, o Options) (*store, error) {
	s, err := bus.OpenStream(ctx, c, o.Streams()[0])
	if err != nil {
		return nil, err
	}
	return &store{s}, nil
}

// slotOf is the slot of a time.
func slotOf(t time.Time) int64 { return t.Unix() / int64(slotTime/time.Second) }

func slotSubject(slot int64) string {
	return bus.SubjectRecord + strconv.FormatInt(slot/slotsOfHour, 10) + "." + strconv.FormatInt(slot, 10)
}

// maxBody is how many bytes fit in one message.
func (s *store) maxBody() int { return s.s.MaxMessage() - 1<<10 }

// append stores a message in a slot and waits until it is stored. [bus.ErrTooLarge] is
// for a message that this server never takes.
func (s *store) append(ctx context.Context, slot int64, data []byte) error {
	_, err := s.s.Put(ctx, bus.Message{Subject: slotSubject(slot), Data: data})
	return err
}

// slots returns slots before the given one that hold messages, newest first: at least the
// newest of them, and none only where there is none.
func (s *store) slots(ctx context.Context, before int64) ([]int64, error) {
	if before <= 0 {
		return nil, nil
	}
	hour := strconv.FormatInt((before-1)/slotsOfHour, 10)
	slots, err := s.fitting(ctx, bus.SubjectRecord+hour+".*", before)
	if err == nil && len(slots) == 0 {
		// A busy log never comes here; in a quiet one the whole list is short.
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

// read calls f with messages of a slot in the order in which they were stored: at most the
// given number of them (0: all), and none before the sequence from. It returns the number
// of messages read. f may keep the data. A replica that is behind does not have the last
// ones yet.
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

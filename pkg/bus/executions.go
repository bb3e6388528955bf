package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ExecutionSlot is the time that shares one subject of the execution log. The
// NATS server keeps about 290 bytes of memory for a subject, so a day that is
// never idle takes 2.5 MB (8,640 slots), whatever the number of front doors.
const ExecutionSlot = 10 * time.Second

// slotsOfHour is how many slots share the first token of their subjects, so that
// one question finds those in use.
const slotsOfHour = int64(time.Hour / ExecutionSlot)

const (
	// readBytes and readCount are what one question to the execution log answers
	// at most, but for its last message. While it answers, the stream takes no
	// writes.
	readBytes = 1 << 20
	readCount = 1000
	// leastExecutions is the smallest bound that is tried where the server has
	// not the room for the one asked for.
	leastExecutions = 8 << 20
)

// ExecutionsOptions say how much of the execution log is kept. They count when
// the stream is made; one that exists is left as it is.
type ExecutionsOptions struct {
	// MaxAge is how long a message is kept; 0 is for ever.
	MaxAge time.Duration
	// MaxBytes bounds the stream: the oldest messages make room for new ones. 0
	// means no bound. A server that has less room gives what it has.
	MaxBytes int64
}

// Executions is the stream of call records. It knows slots of time and bytes;
// what stands in a message is decided in internal/record. All methods are safe
// for concurrent use.
type Executions struct {
	c      *Conn
	stream jetstream.Stream
}

func executionsStream(o ExecutionsOptions, replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: streamExecutions, Description: "call records", Subjects: []string{subjectRecord + "*.*"},
		Storage: jetstream.FileStorage, Replicas: replicas, MaxMsgsPerSubject: -1, MaxAge: o.MaxAge, MaxBytes: bound(o.MaxBytes),
		// It is a log and no promise: what is old gives way to what is new.
		Discard: jetstream.DiscardOld, AllowDirect: true,
	}
}

// OpenExecutions opens the execution log.
func OpenExecutions(ctx context.Context, c *Conn, o ExecutionsOptions) (*Executions, error) {
	want := executionsStream(o, c.replicas)
	s, err := openStream(ctx, c, want)
	for noRoom(err) && want.MaxBytes/2 >= leastExecutions {
		// A server sets aside what a stream may take. A small disk is no reason
		// not to start.
		want.MaxBytes /= 2
		if s, err = openStream(ctx, c, want); err == nil {
			c.log.Warn("the NATS server has little room: fewer call records are kept", "bytes", want.MaxBytes, "wanted", o.MaxBytes)
		}
	}
	if err != nil {
		return nil, err
	}
	if !s.CachedInfo().Config.AllowDirect {
		return nil, fmt.Errorf("the stream %s does not allow direct reads: change it with nats stream edit --allow-direct", streamExecutions)
	}
	return &Executions{c, s}, nil
}

// Codes of JetStream for storage that cannot be set aside.
const (
	codeAccountFull jetstream.ErrorCode = 10002
	codeServerFull  jetstream.ErrorCode = 10023
	codeStorageFull jetstream.ErrorCode = 10047
)

func noRoom(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == codeStorageFull || api.ErrorCode == codeServerFull || api.ErrorCode == codeAccountFull)
}

// ExecutionSlotOf is the slot of a time.
func ExecutionSlotOf(t time.Time) int64 { return t.Unix() / int64(ExecutionSlot/time.Second) }

func slotSubject(slot int64) string {
	return subjectRecord + strconv.FormatInt(slot/slotsOfHour, 10) + "." + strconv.FormatInt(slot, 10)
}

// MaxBody is how many bytes fit in one message.
func (e *Executions) MaxBody() int { return e.c.MaxPayload() - 1<<10 }

// Append stores a message in a slot and waits until it is stored. [ErrTooLarge]
// is for a message that this server never takes.
func (e *Executions) Append(ctx context.Context, slot int64, data []byte) error {
	_, err := published(e.c.js.PublishMsg(ctx, &nats.Msg{Subject: slotSubject(slot), Data: data}))
	if errors.Is(err, nats.ErrMaxPayload) {
		return ErrTooLarge
	}
	return err
}

// ErrTooLarge means that the message is larger than the server takes.
var ErrTooLarge = errors.New("the message is larger than the NATS server takes")

// Slots returns slots before the given one that hold messages, newest first: at
// least the newest of them, and none only where there is none.
func (e *Executions) Slots(ctx context.Context, before int64) ([]int64, error) {
	if before <= 0 {
		return nil, nil
	}
	hour := strconv.FormatInt((before-1)/slotsOfHour, 10)
	slots, err := e.slots(ctx, subjectRecord+hour+".*", before)
	if err == nil && len(slots) == 0 {
		// A busy log never comes here; in a quiet one the whole list is short.
		slots, err = e.slots(ctx, subjectRecord+"*.*", before)
	}
	return slots, err
}

func (e *Executions) slots(ctx context.Context, filter string, before int64) ([]int64, error) {
	info, err := e.stream.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, fmt.Errorf("looking for call records: %w", err)
	}
	slots := make([]int64, 0, len(info.State.Subjects))
	for subject := range info.State.Subjects {
		if slot, err := strconv.ParseInt(lastToken(subject), 10, 64); err == nil && slot < before {
			slots = append(slots, slot)
		}
	}
	slices.Sort(slots)
	slices.Reverse(slots)
	return slots, nil
}

// Read calls f with messages of a slot in the order in which they were stored: at
// most so many (0: all), and none before the sequence from. It returns how many
// messages it read. The data are f's to keep. A replica that is behind does not
// have the last ones yet.
func (e *Executions) Read(ctx context.Context, slot int64, from uint64, most int, f func(sequence uint64, data []byte)) (int, error) {
	subject := slotSubject(slot)
	total := 0
	for {
		batch := readCount
		if most > 0 {
			batch = min(batch, most-total)
		}
		p, err := e.page(ctx, subject, max(from, 1), batch, f)
		total += p.read
		if err != nil {
			return total, fmt.Errorf("reading call records: %w", err)
		}
		if p.over || total == most {
			return total, nil
		}
		from = p.last + 1
	}
}

// page is what one question brought.
type page struct {
	read int
	last uint64 // the sequence of the last message
	over bool   // nothing follows
}

// page asks for messages of a subject from a sequence on. nats.go has no call for
// many at once.
func (e *Executions) page(ctx context.Context, subject string, from uint64, batch int, f func(uint64, []byte)) (page, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	body, err := json.Marshal(struct {
		From    uint64 `json:"seq"`
		Subject string `json:"next_by_subj"`
		Batch   int    `json:"batch"`
		Bytes   int    `json:"max_bytes"`
	}{from, subject, batch, readBytes})
	if err != nil {
		return page{}, err
	}
	inbox := e.c.nc.NewInbox()
	sub, err := e.c.nc.SubscribeSync(inbox)
	if err != nil {
		return page{}, err
	}
	defer func() { _ = sub.Unsubscribe() }() // it fails only when the connection is closed
	if err := e.c.nc.PublishRequest(jetstream.DefaultAPIPrefix+"DIRECT.GET."+streamExecutions, inbox, body); err != nil {
		return page{}, err
	}
	p := page{last: from}
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return p, err
		}
		switch status := m.Header.Get("Status"); status {
		case "":
			if p.last, err = strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64); err != nil {
				return p, fmt.Errorf("a message without its sequence: %w", err)
			}
			p.read++
			f(p.last, m.Data)
		case "204": // the end of this answer
			p.over = p.read == 0 || m.Header.Get("Nats-Num-Pending") == "0"
			return p, nil
		case "404":
			p.over = true
			return p, nil
		default:
			return p, fmt.Errorf("the NATS server answers %s", strings.TrimSpace(status+" "+m.Header.Get("Description")))
		}
	}
}

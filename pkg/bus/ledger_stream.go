package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// What can become of a read or write of a durable record, beside success.
// Anything else means that nobody knows whether the write happened.
var (
	// ErrConflict: another writer was first; nothing was written.
	ErrConflict = errors.New("another writer changed the record first")
	// ErrNotFound: there is no such record.
	ErrNotFound = errors.New("there is no such record")
	// ErrRefused: JetStream refused the write, for want of space most often.
	ErrRefused = errors.New("JetStream refused the write")
)

// publishAfter stores a message when the last one on its subject has the
// sequence last; 0 means that there must be none. It returns the new sequence.
func (c *Conn) publishAfter(ctx context.Context, m *nats.Msg, last uint64, opts ...jetstream.PublishOpt) (uint64, error) {
	opts = append(opts, jetstream.WithExpectLastSequencePerSubject(last))
	return c.store(ctx, m, opts...)
}

// codeWrongLast and codeWrongLastPlain are JetStream's for a sequence that is
// not the expected one, on a single server and where a batch or a leader decides.
const (
	codeWrongLast      jetstream.ErrorCode = 10071
	codeWrongLastPlain jetstream.ErrorCode = 10164
)

func published(ack *jetstream.PubAck, err error) (uint64, error) {
	if err == nil {
		return ack.Sequence, nil
	}
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return 0, fmt.Errorf("storing the record: %w", err)
	}
	if api.ErrorCode == codeWrongLast || api.ErrorCode == codeWrongLastPlain {
		return 0, ErrConflict
	}
	return 0, fmt.Errorf("%w: %w", ErrRefused, err)
}

// message is one stored message.
type message struct {
	subject  string
	sequence uint64
	header   nats.Header
	data     []byte
	stored   time.Time
}

// direct reads the last message of a subject from any replica, which may be
// behind.
func direct(ctx context.Context, s jetstream.Stream, subject string) (message, error) {
	raw, err := s.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return message{}, ErrNotFound
	}
	if err != nil {
		return message{}, fmt.Errorf("reading the record: %w", err)
	}
	return message{raw.Subject, raw.Sequence, raw.Header, raw.Data, raw.Time}, nil
}

// leader reads the last message of a subject from the stream's leader, which has
// every write that was acknowledged. nats.go reads there only from streams
// without direct access, so the request is made here.
func (c *Conn) leader(ctx context.Context, stream, subject string) (message, error) {
	return c.fromLeader(ctx, stream, map[string]any{"last_by_subj": subject})
}

// fromLeader reads the message that a request names from the leader of a stream.
func (c *Conn) fromLeader(ctx context.Context, stream string, request map[string]any) (message, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, connectTimeout)
		defer cancel()
	}
	body, err := json.Marshal(request)
	if err != nil {
		return message{}, fmt.Errorf("asking for the record: %w", err)
	}
	reply, err := c.nc.RequestWithContext(ctx, jetstream.DefaultAPIPrefix+"STREAM.MSG.GET."+stream, body)
	if err != nil {
		return message{}, fmt.Errorf("reading the record: %w", err)
	}
	var got struct {
		Error   *jetstream.APIError `json:"error"`
		Message struct {
			Subject  string    `json:"subject"`
			Sequence uint64    `json:"seq"`
			Header   []byte    `json:"hdrs"`
			Data     []byte    `json:"data"`
			Time     time.Time `json:"time"`
		} `json:"message"`
	}
	if err := json.Unmarshal(reply.Data, &got); err != nil {
		return message{}, fmt.Errorf("reading the record: %w", err)
	}
	if got.Error != nil {
		if got.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound {
			return message{}, ErrNotFound
		}
		return message{}, fmt.Errorf("reading the record: %w", got.Error)
	}
	m := message{subject: got.Message.Subject, sequence: got.Message.Sequence, data: got.Message.Data, stored: got.Message.Time}
	if len(got.Message.Header) > 0 {
		if m.header, err = nats.DecodeHeadersMsg(got.Message.Header); err != nil {
			return message{}, fmt.Errorf("reading the record's header: %w", err)
		}
	}
	return m, nil
}

package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Last reads the last message of a subject. It returns [ErrNotFound] if there is none.
func (s *Stream) Last(ctx context.Context, subject string, from Source) (Message, error) {
	m, err := Message{}, ErrNotFound
	if from != Leader {
		m, err = s.direct(ctx, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
			return s.s.GetLastMsgForSubject(ctx, subject)
		})
	}
	if from == Leader || from == Either && errors.Is(err, ErrNotFound) {
		m, err = s.leader(ctx, map[string]any{"last_by_subj": subject})
	}
	return m, err
}

// Next reads the first message with at least the given sequence of a subject, which may have
// wildcards. It returns [ErrNotFound] if there is none; only the leader can prove that.
func (s *Stream) Next(ctx context.Context, subject string, sequence uint64, from Source) (Message, error) {
	sequence = max(sequence, 1)
	if from == Leader {
		return s.leader(ctx, map[string]any{"seq": sequence, "next_by_subj": subject})
	}
	return s.direct(ctx, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return s.s.GetMsg(ctx, sequence, jetstream.WithGetMsgSubject(subject))
	})
}

// direct reads a message from a replica.
func (s *Stream) direct(ctx context.Context, get func(context.Context) (*jetstream.RawStreamMsg, error)) (Message, error) {
	raw, err := askReplicas(ctx, get, func(*jetstream.RawStreamMsg) {})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return Message{}, ErrNotFound
	}
	if err != nil {
		return Message{}, fmt.Errorf("reading the record: %w", explained(err))
	}
	return message(raw.Subject, raw.Sequence, raw.Header, raw.Data, raw.Time), nil
}

// silentFor is the time after which a request to a replica is sent again, to any of them; the time doubles
// with each request. A server that is frozen gets its share of the requests until the others notice that
// it is gone.
var silentFor = 250 * time.Millisecond

// mostRequests limits the requests for one read, because the servers may be busy and not frozen.
const mostRequests = 5

// askReplicas calls ask and, while no server responds, again in addition. It returns the first result that
// is no timeout, and drops the others. ctx limits it, and at most [connectTimeout].
func askReplicas[T any](ctx context.Context, ask func(context.Context) (T, error), drop func(T)) (first T, err error) {
	type result struct {
		value T
		err   error
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	results := make(chan result, mostRequests)
	var asking sync.WaitGroup
	defer func() {
		cancel()
		asking.Wait()
		for range len(results) {
			if r := <-results; r.err == nil {
				drop(r.value)
			}
		}
	}()
	sent, open := 0, 0
	send := func() {
		sent, open = sent+1, open+1
		asking.Go(func() {
			v, err := ask(ctx)
			results <- result{v, err}
		})
	}
	send()
	again := time.NewTimer(silentFor)
	defer again.Stop()
	for wait := 2 * silentFor; ; wait *= 2 {
		select {
		case <-again.C:
			if send(); sent < mostRequests {
				again.Reset(wait)
			}
		case r := <-results:
			if open--; !errors.Is(r.err, context.DeadlineExceeded) || open == 0 {
				return r.value, r.err
			}
		}
	}
}

func message(subject string, sequence uint64, header nats.Header, data []byte, stored time.Time) Message {
	m := Message{Subject: subject, Sequence: sequence, Data: data, Stored: stored}
	if text := header.Get(headerRecord); text != "" {
		m.Record, _ = recordEncoding.DecodeString(text) // a header that cannot be decoded is not a record
	}
	return m
}

// leader reads a message from the leader.
func (s *Stream) leader(ctx context.Context, request map[string]any) (Message, error) {
	begun := time.Now()
	m, err := s.c.leader(ctx, s.spec.Name, request)
	s.c.writes.read(&s.spec, begun, err)
	return m, err
}

// leader reads a message from the leader of a stream. nats.go reads from the leader only if the
// stream has no direct access, so this sends the request itself.
func (c *Conn) leader(ctx context.Context, stream string, request map[string]any) (Message, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, connectTimeout)
		defer cancel()
	}
	body, err := json.Marshal(request)
	if err != nil {
		return Message{}, fmt.Errorf("asking for the record: %w", err)
	}
	reply, err := c.nc.RequestWithContext(ctx, api+"STREAM.MSG.GET."+stream, body)
	if err != nil {
		return Message{}, fmt.Errorf("reading the record: %w", explained(err))
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
		return Message{}, fmt.Errorf("reading the record: %w", err)
	}
	if got.Error != nil {
		if got.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound {
			return Message{}, ErrNotFound
		}
		return Message{}, fmt.Errorf("reading the record: %w", got.Error)
	}
	var header nats.Header
	if len(got.Message.Header) > 0 {
		if header, err = nats.DecodeHeadersMsg(got.Message.Header); err != nil {
			return Message{}, fmt.Errorf("reading the record's header: %w", err)
		}
	}
	return message(got.Message.Subject, got.Message.Sequence, header, got.Message.Data, got.Message.Time), nil
}

// Read reads messages of a subject from a replica, starting at the first with at least the
// sequence from. It returns at most most messages, but at least one if there is any, and at most
// maxBytes after the first. more reports that others follow or that this is unknown, which is the
// case if one was requested. If more is false, that is not a proof that there are none. Only
// Sequence and Data are set. Read sends the request itself, because nats.go has no call to read
// many messages at once.
func (s *Stream) Read(ctx context.Context, subject string, from uint64, most, maxBytes int) (found []Message, more bool, err error) {
	defer func() {
		if err != nil {
			found, err = nil, fmt.Errorf("reading the stream of %s: %w", s.spec.What, err)
		}
	}()
	request := map[string]any{"seq": max(from, 1), "next_by_subj": subject}
	if most > 1 {
		request["batch"], request["max_bytes"] = most, max(maxBytes, 1)
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, false, err
	}
	begun, err := askReplicas(ctx, func(ctx context.Context) (*page, error) {
		return s.begin(ctx, body)
	}, (*page).close)
	if err != nil {
		return nil, false, err
	}
	defer begun.close()
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	for m := begun.first; ; m, err = begun.sub.NextMsgWithContext(ctx) {
		if err != nil {
			return nil, false, err
		}
		switch status := m.Header.Get("Status"); status {
		case "":
			sequence, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
			if err != nil {
				return nil, false, fmt.Errorf("a message without its sequence: %w", err)
			}
			if found = append(found, Message{Sequence: sequence, Data: m.Data}); most <= 1 {
				return found, true, nil // the server does not report whether others follow
			}
		case "204": // end of the response
			return found, len(found) > 0 && m.Header.Get("Nats-Num-Pending") != "0", nil
		case "404": // no message
			return found, false, nil
		case "503":
			return nil, false, fmt.Errorf("no server responds for the stream %s", s.spec.Name)
		default:
			return nil, false, fmt.Errorf("the NATS server returned %s", strings.TrimSpace(status+" "+m.Header.Get("Description")))
		}
	}
}

// page is a response of many messages that has begun.
type page struct {
	sub   *nats.Subscription
	first *nats.Msg
}

func (p *page) close() { _ = p.sub.Unsubscribe() } // it fails only when the connection is closed

// begin sends the request of [Stream.Read] and waits for the first message of the response.
func (s *Stream) begin(ctx context.Context, body []byte) (*page, error) {
	inbox := s.c.nc.NewInbox()
	sub, err := s.c.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	p := &page{sub: sub}
	if err = sub.SetPendingLimits(-1, -1); err == nil {
		err = s.c.nc.PublishRequest(api+"DIRECT.GET."+s.spec.Name, inbox, body)
	}
	if err == nil {
		p.first, err = sub.NextMsgWithContext(ctx)
	}
	if err != nil {
		p.close()
		return nil, explained(err)
	}
	return p, nil
}

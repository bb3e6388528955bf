package bus

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// taken counts the calls that reach a worker.
type taken struct{ calls int }

func (s *taken) Call(*CallFrame, ReplyTo) { s.calls++ }
func (s *taken) Cancel(uint64)            {}

// counted returns a connection without a server, and the number of dropped messages by reason.
func counted() (*Conn, map[string]int) {
	c, found := &Conn{log: slog.New(slog.DiscardHandler)}, map[string]int{}
	c.OnUnexpected(func(reason string) { found[reason]++ })
	return c, found
}

// A role that may read a stream can have its messages delivered to the subject of a worker, with
// the reply subject of the consumer or, for direct reads, with none.
func TestACallThatNoRouterSentIsDropped(t *testing.T) {
	for reply, want := range map[string]int{
		"": 0, "$JS.ACK.callyard_ledger.c1.1.1.1.0.0": 0, "_INBOX.approver.x.1": 0, subjectReply + "r1.7": 1,
	} {
		s := &taken{}
		conn, dropped := counted()
		l := &Listener{conn: conn, handler: s, log: conn.log}
		l.receive(&nats.Msg{Subject: subjectCall + "w1", Reply: reply, Data: AppendCall(nil, &CallFrame{Seq: 7, Server: "demo", Tool: "echo", Payload: []byte("{}")})})
		if s.calls != want || dropped[UnexpectedOrigin] != 1-want {
			t.Errorf("with the reply subject %q %d calls arrived and %v was dropped, want %d", reply, s.calls, dropped, want)
		}
	}
}

func TestJetStreamDeliveriesAreRecognised(t *testing.T) {
	for name, c := range map[string]struct {
		m    nats.Msg
		want bool
	}{
		"a consumer delivers":              {nats.Msg{Reply: "$JS.ACK.callyard_ledger.c1.1.1.1.0.0"}, true},
		"its flow control":                 {nats.Msg{Reply: "$JS.FC.callyard_ledger.c1"}, true},
		"a direct read":                    {nats.Msg{Header: nats.Header{"Nats-Stream": {"callyard_ledger"}}}, true},
		"one whose stored header is blank": {nats.Msg{Header: nats.Header{"Nats-Stream": {"", "callyard_ledger"}}}, true},
		"a router":                         {nats.Msg{Reply: subjectReply + "r1.7"}, false},
		"a worker":                         {nats.Msg{}, false},
		"nobody took it":                   {nats.Msg{Header: nats.Header{"Status": {"503"}}}, false},
	} {
		if got := fromJetStream(&c.m); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// receiver counts frames by their kind.
type receiver map[ReplyKind]int

func (r receiver) Reply(f *ReplyFrame) { r[f.Kind]++ }

// A worker may publish on the reply subjects of all routers. To say anything about a message, it
// must have received it.
func TestUnexpectedRepliesAreDroppedAndCounted(t *testing.T) {
	conn, dropped := counted()
	cl := &Client{conn: conn, log: conn.log, replies: subjectReply + "r1.", pending: map[uint64]*pendingCall{}, probes: map[uint64]chan bool{}}
	got := receiver{}
	call := &pendingCall{to: got, worker: "w1"} // within this process: its message has the number 0
	cl.pending[7] = call
	nobody := func(number string) *nats.Msg {
		return &nats.Msg{Subject: cl.replies + number, Header: nats.Header{"Status": {"503"}}}
	}
	for _, number := range []string{"0", "1", "2", "r", "zzzzzzzzzzzzzzzz"} {
		cl.receive(nobody(number))
		cl.receive(&nats.Msg{Subject: cl.replies + number})
	}
	if len(got) != 0 || dropped[UnexpectedNumber] != 10 {
		t.Errorf("replies to messages that were never sent: %v, dropped %v", got, dropped)
	}
	cl.receive(&nats.Msg{Subject: cl.replies + "r", Data: AppendReply(nil, &ReplyFrame{Seq: 8, Kind: ReplyResult})})
	cl.receive(&nats.Msg{Subject: cl.replies + "r", Data: []byte("no frame")})
	if len(got) != 0 || dropped[UnexpectedNumber] != 11 || dropped[UnexpectedBytes] != 1 {
		t.Errorf("a result of no call and bytes: %v, dropped %v", got, dropped)
	}
	call.message.Store(1 << 40)
	cl.receive(nobody(strings.TrimPrefix(cl.replySubject(1<<40), cl.replies)))
	if got[ReplyNobody] != 1 {
		t.Errorf("the call that nobody took has not ended: %v", got)
	}
}

package bus

import (
	"log/slog"
	"testing"

	"github.com/nats-io/nats.go"
)

// strayed counts what reaches a worker.
type strayed struct{ calls int }

func (s *strayed) Call(*CallFrame, ReplyTo) { s.calls++ }
func (s *strayed) Cancel(uint64)            {}

// Whoever may make consumers can have bytes delivered to the subject of a worker,
// with the reply subject of the consumer.
func TestACallThatIsNotARoutersIsDropped(t *testing.T) {
	for reply, want := range map[string]int{
		"": 0, "$JS.ACK.callyard_ledger.c1.1.1.1.0.0": 0, "_INBOX.approver.x.1": 0, subjectReply + "r1.7": 1,
	} {
		s := &strayed{}
		l := &Listener{handler: s, log: slog.New(slog.DiscardHandler)}
		l.receive(&nats.Msg{Subject: subjectCall + "w1", Reply: reply, Data: AppendCall(nil, &CallFrame{Seq: 7, Server: "demo", Tool: "echo", Payload: []byte("{}")})})
		if s.calls != want {
			t.Errorf("with the reply subject %q %d calls arrived, want %d", reply, s.calls, want)
		}
	}
}

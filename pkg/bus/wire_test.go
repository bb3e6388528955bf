package bus

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/callyard/callyard/pkg/schema"
)

// noCallsWorker is a worker that must not receive any call.
type noCallsWorker struct{ t *testing.T }

func (d noCallsWorker) Call(f *CallFrame, _ ReplyTo) { d.t.Errorf("call %s was read", f.ID) }
func (d noCallsWorker) Cancel(uint64)                { d.t.Error("a cancel was read") }

func TestMessageOfAnotherVersionIsRefusedAsNeverStarted(t *testing.T) {
	srv, err := server.NewServer(&server.Options{DontListen: true, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	defer srv.WaitForShutdown()
	defer srv.Shutdown()
	if !srv.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	conn, err := Connect(t.Context(), Options{InProcess: srv, Name: "worker", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	l, err := conn.Listen("w", noCallsWorker{t})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	answers := make(chan *nats.Msg, 8)
	if _, err := conn.nc.ChanSubscribe(subjectReply+"r.*", answers); err != nil {
		t.Fatal(err)
	}
	next := func() *nats.Msg {
		t.Helper()
		select {
		case m := <-answers:
			return m
		case <-time.After(time.Minute):
			t.Fatal("there is no answer")
			return nil
		}
	}
	whole := AppendCall(nil, &CallFrame{Seq: 7, ID: "c", Server: "s", Tool: "t"})
	whole[0] = wireVersion + 1
	for _, message := range [][]byte{whole, {wireVersion + 1}, {0xff, 0, 0, 0}} {
		if err := conn.nc.PublishRequest(subjectCall+"w", subjectReply+"r.1z", message); err != nil {
			t.Fatal(err)
		}
		if m := next(); len(m.Data) != 0 || m.Header.Get("Status") != "503" || LastToken(m.Subject) != "1z" {
			t.Errorf("%x is answered with %v %q on %s", message, m.Header, m.Data, m.Subject)
		}
	}
	// A message that cannot be decoded for another reason may have started, so it is not refused.
	for _, message := range [][]byte{{wireVersion, 1, 2, 3}, AppendCall(nil, &CallFrame{Seq: 7})[:9]} {
		if err := conn.nc.PublishRequest(subjectCall+"w", subjectReply+"r.2", message); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.nc.PublishRequest(subjectCall+"w", subjectReply+"r.3", whole); err != nil {
		t.Fatal(err)
	}
	if m := next(); LastToken(m.Subject) != "3" {
		t.Errorf("the next answer is %+v", m)
	}
}

func TestWorkerOfAnotherVersionIsShownAsUnreachable(t *testing.T) {
	for _, c := range []struct {
		wire int
		same bool
	}{{0, wireVersion == 1}, {1, wireVersion == 1}, {wireVersion, true}, {wireVersion + 1, false}} {
		w := &schema.Worker{ID: "w", Wire: c.wire, Servers: []schema.Server{{ID: "s", State: schema.StateInitialized, Slots: 8}}}
		markOtherVersion(w)
		s := w.Servers[0]
		if used := s.State == schema.StateInitialized && s.Slots == 8; used != c.same {
			t.Errorf("version %d: %+v", c.wire, s)
		}
		if !c.same && !strings.Contains(s.Error, "upgrade the older one") {
			t.Errorf("version %d: it does not say why: %q", c.wire, s.Error)
		}
	}
}

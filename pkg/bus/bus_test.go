package bus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answerer is a worker that answers each call according to the name of the tool.
type answerer struct {
	l         *bus.Listener
	ready     chan struct{}
	mu        sync.Mutex
	cancelled chan uint64
	held      []func()
}

func listen(t *testing.T, c *bus.Conn, id schema.WorkerID) *answerer {
	t.Helper()
	a := &answerer{ready: make(chan struct{}), cancelled: make(chan uint64, 100)}
	l, err := c.Listen(id, a)
	if err != nil {
		t.Fatal(err)
	}
	a.l = l
	close(a.ready)
	t.Cleanup(l.Close)
	if err := c.Flush(t.Context()); err != nil { // messages of other connections may overtake its subscriptions
		t.Fatal(err)
	}
	return a
}

func (a *answerer) Call(f *bus.CallFrame, to bus.ReplyTo) {
	<-a.ready
	seq, tool, body := f.Seq, f.Tool, f.Payload
	switch tool {
	case "echo":
		a.l.Result(to, seq, &schema.Result{Body: body})
	case "progress":
		a.l.Progress(to, seq, []byte(`1`))
		a.l.Progress(to, seq, []byte(`2`))
		a.l.Result(to, seq, &schema.Result{Body: body})
	case "big":
		var n int
		_, _ = fmt.Sscan(string(body), &n)
		a.l.Result(to, seq, &schema.Result{Body: pattern(n)})
	case "fail":
		e := schema.Errorf(schema.KindProtocol, "no")
		e.RPC = &schema.RPCError{Code: -32602, Message: "no", Data: []byte(`{"n":9007199254740993}`)}
		a.l.Error(to, seq, e, true, time.Millisecond)
	case "hold":
		a.mu.Lock()
		a.held = append(a.held, func() { a.l.Result(to, seq, &schema.Result{Body: body}) })
		a.mu.Unlock()
	}
}

func (a *answerer) Cancel(seq uint64) { a.cancelled <- seq }

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + i%23)
	}
	return b
}

// waiter receives the replies to one call.
type waiter struct {
	frames chan bus.ReplyFrame
}

func (w *waiter) Reply(f *bus.ReplyFrame) { w.frames <- *f }

func newWaiter() *waiter { return &waiter{frames: make(chan bus.ReplyFrame, 4096)} }

func (w *waiter) next(t *testing.T) bus.ReplyFrame {
	t.Helper()
	select {
	case f := <-w.frames:
		return f
	case <-time.After(time.Minute):
		t.Fatal("no reply")
		return bus.ReplyFrame{}
	}
}

func client(t *testing.T, c *bus.Conn) *bus.Client {
	t.Helper()
	cl, err := c.NewClient(schema.NewID("router"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cl.Close() })
	return cl
}

func send(t *testing.T, cl *bus.Client, worker schema.WorkerID, tool, body string) (*waiter, uint64) {
	t.Helper()
	w := newWaiter()
	seq, err := cl.Send(worker, &bus.CallFrame{ID: "c", Server: "s", Tool: tool, Payload: []byte(body)}, w)
	if err != nil {
		t.Fatal(err)
	}
	return w, seq
}

// place is a server with a way to connect to it.
type place struct {
	*bustest.Server
	local *bus.Local
}

func (p place) Connect(t testing.TB, name string) *bus.Conn { return p.ConnectLocal(t, name, p.local) }

// servers runs the test against an embedded server, within one process, and
// against a real server process.
func servers(t *testing.T, f func(t *testing.T, s place)) {
	t.Run("embedded", func(t *testing.T) { f(t, place{bustest.Start(t), nil}) })
	t.Run("local", func(t *testing.T) { f(t, place{bustest.Start(t), &bus.Local{}}) })
	t.Run("process", func(t *testing.T) { f(t, place{bustest.StartProcess(t), nil}) })
}

func TestArgumentsAndResultsKeepTheirBytes(t *testing.T) {
	servers(t, func(t *testing.T, s place) {
		listen(t, s.Connect(t, "worker"), "w1")
		cl := client(t, s.Connect(t, "router"))
		body := `{"b":9007199254740993,"a":1.0,"a\u0000":"` + "\u2028" + `"}`
		w, _ := send(t, cl, "w1", "echo", body)
		if f := w.next(t); f.Kind != bus.ReplyResult || string(f.Payload) != body {
			t.Fatalf("got %v %q", f.Kind, f.Payload)
		}
		w, _ = send(t, cl, "w1", "progress", "{}")
		for i, want := range []bus.ReplyKind{bus.ReplyProgress, bus.ReplyProgress, bus.ReplyResult} {
			if f := w.next(t); f.Kind != want {
				t.Fatalf("frame %d is %v", i, f.Kind)
			}
		}
		w, _ = send(t, cl, "w1", "fail", "{}")
		if f := w.next(t); f.Kind != bus.ReplyError || !f.Started || !bytes.Contains(f.Payload, []byte("9007199254740993")) {
			t.Fatalf("got %v %s", f.Kind, f.Payload)
		}
		if n := cl.Pending(); n != 0 {
			t.Errorf("%d calls are still pending", n)
		}
	})
}

func TestAThousandCallsAtOnceAllGetTheirOwnAnswer(t *testing.T) {
	servers(t, func(t *testing.T, s place) {
		listen(t, s.Connect(t, "worker"), "w1")
		cl := client(t, s.Connect(t, "router"))
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				body := fmt.Sprintf(`{"i":%d}`, i)
				w, _ := send(t, cl, "w1", "echo", body)
				if f := w.next(t); string(f.Payload) != body {
					t.Errorf("call %d got %q", i, f.Payload)
				}
			})
		}
		wg.Wait()
	})
}

func TestCallWithoutListenerIsReportedAsNeverStarted(t *testing.T) {
	servers(t, func(t *testing.T, s place) {
		cl := client(t, s.Connect(t, "router"))
		w, _ := send(t, cl, "nobody", "echo", "{}")
		if f := w.next(t); f.Kind != bus.ReplyNobody {
			t.Fatalf("got %v", f.Kind)
		}
		w2 := newWaiter()
		if _, err := cl.SendAny(&bus.CallFrame{Server: "unheard"}, w2); err != nil {
			t.Fatal(err)
		}
		if f := w2.next(t); f.Kind != bus.ReplyNobody {
			t.Fatalf("got %v", f.Kind)
		}
	})
}

func TestTheQueueGroupOfAServerReachesOneOfItsWorkers(t *testing.T) {
	s := bustest.Start(t)
	a := listen(t, s.Connect(t, "worker"), "w1")
	if err := a.l.Offer("s"); err != nil {
		t.Fatal(err)
	}
	c := s.Connect(t, "router")
	cl := client(t, c)
	if err := c.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	var w *waiter
	for range 50 { // the worker's interest propagates asynchronously
		w = newWaiter()
		if _, err := cl.SendAny(&bus.CallFrame{Server: "s", Tool: "echo", Payload: []byte("{}")}, w); err != nil {
			t.Fatal(err)
		}
		if f := w.next(t); f.Kind == bus.ReplyResult && f.Worker == "w1" {
			a.l.Withdraw("s")
			return
		}
	}
	t.Fatal("the worker was never reached")
}

func TestAResultOverTheMessageLimitArrivesWhole(t *testing.T) {
	servers(t, func(t *testing.T, s place) {
		a := listen(t, s.Connect(t, "worker"), "w1")
		cl := client(t, s.Connect(t, "router"))
		var wg sync.WaitGroup
		for _, n := range []int{256<<10 - 1, 256 << 10, 256<<10 + 1, 1 << 20, 20 << 20, 20 << 20, 20 << 20, 5<<20 + 7} {
			wg.Go(func() {
				w, _ := send(t, cl, "w1", "big", fmt.Sprint(n))
				f := w.next(t)
				body := f.Payload
				if f.Kind == bus.ReplyFirst {
					ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
					defer cancel()
					var err error
					if body, err = cl.Fetch(ctx, "w1", f, w.frames); err != nil {
						t.Errorf("%d bytes: %v", n, err)
						return
					}
				}
				if !bytes.Equal(body, pattern(n)) {
					t.Errorf("%d bytes came back as %d other bytes", n, len(body))
				}
			})
		}
		wg.Wait()
		w, _ := send(t, cl, "w1", "echo", "{}")
		for w.next(t); a.l.Transfers() != 0; w.next(t) { // see TestAReaderThatGivesUpFreesTheResult
			w, _ = send(t, cl, "w1", "echo", "{}")
		}
	})
}

// lossy is a waiter that loses parts of a large result, as a connection does that is re-established.
type lossy struct {
	*waiter
	lose func(f *bus.ReplyFrame) bool
}

func (l lossy) Reply(f *bus.ReplyFrame) {
	if f.Kind != bus.ReplyPart || !l.lose(f) {
		l.waiter.Reply(f)
	}
}

func TestALostPartOfAResultIsRequestedAgain(t *testing.T) {
	t.Parallel()
	s := bustest.Start(t)
	a := listen(t, s.Connect(t, "worker"), "w1")
	cl := client(t, s.Connect(t, "router"))
	const n = 9 << 20
	for name, lost := range map[string]func(offset, end int64) bool{
		"one in the middle": func(offset, _ int64) bool { return offset > 1<<20 },
		"the last one":      func(_, end int64) bool { return end == n },
	} {
		t.Run(name, func(t *testing.T) {
			done := false
			w := lossy{newWaiter(), func(f *bus.ReplyFrame) bool {
				lose := !done && lost(f.Offset, f.Offset+int64(len(f.Payload)))
				done = done || lose
				return lose
			}}
			if _, err := cl.Send("w1", &bus.CallFrame{ID: "c", Server: "s", Tool: "big", Payload: fmt.Append(nil, n)}, w); err != nil {
				t.Fatal(err)
			}
			body, err := cl.Fetch(t.Context(), "w1", w.next(t), w.frames)
			if err != nil || !bytes.Equal(body, pattern(n)) || !done {
				t.Errorf("%d bytes, %v; a part was lost: %t", len(body), err, done)
			}
		})
	}
	for w, _ := send(t, cl, "w1", "echo", "{}"); a.l.Transfers() != 0; w, _ = send(t, cl, "w1", "echo", "{}") {
		w.next(t)
	}
}

func TestAReaderThatGivesUpFreesTheResult(t *testing.T) {
	s := bustest.Start(t)
	a := listen(t, s.Connect(t, "worker"), "w1")
	c := s.Connect(t, "router")
	cl := client(t, c)
	w, _ := send(t, cl, "w1", "big", fmt.Sprint(9<<20))
	f := w.next(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := cl.Fetch(ctx, "w1", f, w.frames); err == nil {
		t.Fatal("a fetch whose context has ended must fail")
	}
	// The control message to forget and this call use the same connection. Once the call is
	// answered, the message was received or is about to be.
	for range 100 {
		w, _ := send(t, cl, "w1", "echo", "{}")
		w.next(t)
		if a.l.Transfers() == 0 {
			return
		}
	}
	t.Error("the result is still kept")
}

func TestAFetchSaysThatItsWorkerWasLost(t *testing.T) {
	s := bustest.Start(t)
	listen(t, s.Connect(t, "worker"), "w1")
	cl := client(t, s.Connect(t, "router"))
	w, _ := send(t, cl, "w1", "big", fmt.Sprint(9<<20))
	f := w.next(t)
	parts := make(chan bus.ReplyFrame, 1)
	parts <- bus.ReplyFrame{Seq: f.Seq, Kind: bus.ReplyLost}
	if _, err := cl.Fetch(t.Context(), "w1", f, parts); err == nil || !strings.Contains(err.Error(), "the worker was lost") {
		t.Errorf("%v", err)
	}
}

// It would otherwise wait for memory until its caller gives up.
func TestAResultThatNeverFitsIntoMemoryIsAnError(t *testing.T) {
	cl := client(t, bustest.Start(t).Connect(t, "router"))
	first := bus.ReplyFrame{Seq: 1, Kind: bus.ReplyFirst, Worker: "w1", Total: 1<<30 + 1}
	if _, err := cl.Fetch(t.Context(), "w1", first, nil); err == nil || !strings.Contains(err.Error(), "at most 1073741824 bytes") {
		t.Errorf("%v", err)
	}
}

func TestALostWorkerEndsItsCallsWithinOneRoundTrip(t *testing.T) {
	servers(t, func(t *testing.T, s place) {
		conn := s.Connect(t, "worker")
		a := listen(t, conn, "w1")
		cl := client(t, s.Connect(t, "router"))
		w, _ := send(t, cl, "w1", "hold", "{}")
		w2, _ := send(t, cl, "w1", "echo", "{}")
		w2.next(t)
		probe := func(ctx context.Context) { // as a router does
			if !cl.Listens(ctx, "w1") {
				cl.Lost("w1")
			}
		}
		probe(context.Background())
		select {
		case f := <-w.frames:
			t.Fatalf("a live worker was called lost: %v", f.Kind)
		default:
		}
		if s.local != nil {
			a.l.Close() // within one process it is lost only if its listener closes
		}
		conn.Close()
		// The server may take a moment to detect that the connection is closed. A probe that it
		// still forwards is never answered, and routers probe again.
		for range 20 {
			ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
			probe(ctx)
			cancel()
			select {
			case f := <-w.frames:
				if f.Kind != bus.ReplyLost {
					t.Fatalf("got %v", f.Kind)
				}
				return
			default:
			}
		}
		t.Fatal("the worker is not noticed as lost")
	})
}

func TestCancelReachesTheWorker(t *testing.T) {
	s := bustest.Start(t)
	a := listen(t, s.Connect(t, "worker"), "w1")
	cl := client(t, s.Connect(t, "router"))
	_, seq := send(t, cl, "w1", "hold", "{}")
	cl.Cancel("w1", seq)
	select {
	case got := <-a.cancelled:
		if got != seq {
			t.Errorf("cancelled %d, not %d", got, seq)
		}
	case <-time.After(time.Minute):
		t.Fatal("no cancel")
	}
}

func TestWorkerAnswersReceivedCallsAfterItStopsListening(t *testing.T) {
	servers(t, stopsListening)
}

func stopsListening(t *testing.T, s place) {
	a := listen(t, s.Connect(t, "worker"), "w1")
	cl := client(t, s.Connect(t, "router"))
	var wg sync.WaitGroup
	stop := make(chan struct{})
	var answered, refused int
	var mu sync.Mutex
	for range 20 {
		wg.Go(func() {
			for {
				w, _ := send(t, cl, "w1", "echo", "{}")
				f := w.next(t)
				mu.Lock()
				switch f.Kind {
				case bus.ReplyResult:
					answered++
					if answered == 200 {
						close(stop)
					}
				case bus.ReplyNobody:
					refused++
				default:
					t.Errorf("a call ended with %v", f.Kind)
				}
				over := refused > 0
				mu.Unlock()
				if over {
					return
				}
			}
		})
	}
	<-stop
	a.l.StopCalls()
	wg.Wait()
	if refused == 0 {
		t.Error("after StopCalls a call must learn that nobody listens")
	}
}

func TestArgumentsOverTheMessageLimitAreRefusedBeforeTheyLeave(t *testing.T) {
	s := bustest.StartProcess(t)
	cl := client(t, s.Connect(t, "router"))
	_, err := cl.Send("w1", &bus.CallFrame{Payload: make([]byte, 1<<20)}, newWaiter())
	if schema.KindOf(err) != schema.KindTooLarge {
		t.Fatalf("got %v", err)
	}
	if cl.Pending() != 0 {
		t.Error("a refused call is pending")
	}
}

// The message would exceed the limit because of the caller's groups. If NATS refused it, the router
// would take each worker for one that has stopped.
func TestCallOfAPrincipalInVeryManyGroupsIsRefusedIfItsMessageIsTooLarge(t *testing.T) {
	s := bustest.StartProcess(t)
	cl := client(t, s.Connect(t, "router"))
	groups := make([]string, 1000)
	for i := range groups {
		groups[i] = fmt.Sprintf("%020d", i)
	}
	w := newWaiter()
	_, err := cl.Send("w1", &bus.CallFrame{Groups: groups, Payload: make([]byte, 1<<20-bus.Headroom)}, w)
	if schema.KindOf(err) != schema.KindTooLarge {
		t.Errorf("got %v", err)
	}
	if _, err := cl.Send("w1", &bus.CallFrame{Groups: groups[:300], Payload: make([]byte, 1<<20-bus.Headroom)}, newWaiter()); err != nil {
		t.Error(err)
	}
}

func TestToolSwitchIsSharedAndPersistent(t *testing.T) {
	s := bustest.Start(t)
	ctx := context.Background()
	changed := make(chan struct{}, 16)
	one, err := openSwitches(ctx, s.Connect(t, "a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	two, err := openSwitches(ctx, s.Connect(t, "b"), func() { changed <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	row := toolSwitch{Server: "odd name.*", Tool: "a/b c", Reason: "broken", At: time.Unix(1, 0).UTC()}
	if err := one.Put(ctx, row); err != nil {
		t.Fatal(err)
	}
	<-changed
	if got, ok := two.Get(switchKey(row.Server, row.Tool)); !ok || got != row {
		t.Fatalf("the other reader has %+v", got)
	}
	three, err := openSwitches(ctx, s.Connect(t, "c"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer three.Close()
	if len(three.All()) != 1 {
		t.Fatal("a new reader must find the row")
	}
	if err := three.Delete(ctx, switchKey(row.Server, row.Tool)); err != nil {
		t.Fatal(err)
	}
	<-changed
	if len(two.All()) != 0 {
		t.Error("the row is still there")
	}
}

func TestPresenceIsReceived(t *testing.T) {
	s := bustest.Start(t)
	c := s.Connect(t, "router")
	workers, routers := make(chan *schema.Worker, 4), make(chan *schema.FrontDoor, 4)
	w, err := c.WatchPresence(func(w *schema.Worker) { workers <- w }, func(d *schema.FrontDoor) { routers <- d })
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	router := &schema.FrontDoor{
		ID: "r1", InForce: []schema.InForce{{Part: schema.PartPolicy, Version: "v"}}, Version: "1", Region: "north", Started: time.Unix(7, 0).UTC(), Draining: true,
		Load: &schema.Load{Ended: 3, Failed: 1, ToolErrors: 1, InFlight: 4, Waiting: 2, Times: []schema.CallTimes{{AtMost: 0.5, Calls: 2}, {Calls: 1}}},
	}
	hello := make(chan struct{}, 1)
	other := s.Connect(t, "worker")
	h, err := other.WatchHello(func() { hello <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	defer h.Stop()
	for _, f := range []func() error{
		func() error { return other.Flush(context.Background()) },
		func() error { return c.Flush(context.Background()) },
		c.Hello,
		func() error { return other.Announce(&schema.Worker{ID: "w.1", Servers: []schema.Server{{ID: "s"}}}) },
		func() error { return c.AnnounceRouter(router) },
	} {
		if err := f(); err != nil {
			t.Fatal(err)
		}
	}
	<-hello
	if got := <-workers; got.ID != "w.1" || got.Servers[0].ID != "s" {
		t.Errorf("heard %+v", got)
	}
	if got := <-routers; !reflect.DeepEqual(got, router) {
		t.Errorf("heard %+v, not %+v", got, router)
	}
}

func TestPresenceWithLargeServerErrorsIsReceived(t *testing.T) {
	servers(t, func(t *testing.T, s place) {
		c, other := s.Connect(t, "router"), s.Connect(t, "worker")
		workers := make(chan *schema.Worker, 1)
		w, err := c.WatchPresence(func(w *schema.Worker) { workers <- w }, func(*schema.FrontDoor) {})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		if err := c.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		const wrote = 8 << 10 // bytes that are kept of each
		said := &schema.Worker{ID: "w.1"}
		for i := range other.MaxPayload()/wrote + 1 {
			said.Servers = append(said.Servers, schema.Server{ID: schema.ServerID(fmt.Sprint(i)), Error: "it exited", StderrTail: strings.Repeat("e", wrote)})
		}
		if err := other.Announce(said); err != nil {
			t.Fatal(err)
		}
		if got := <-workers; len(got.Servers) != len(said.Servers) || got.Servers[0].Error != "it exited" {
			t.Errorf("heard of %d servers, not %d", len(got.Servers), len(said.Servers))
		}
		if said.Servers[0].StderrTail == "" {
			t.Error("the report of the worker itself was changed")
		}
	})
}

func TestUnreachableServerErrorSuggestsTheFix(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err := bus.Connect(ctx, bus.Options{URL: "nats://127.0.0.1:1", Log: slog.New(slog.DiscardHandler)})
	if err == nil || !bytes.Contains([]byte(err.Error()), []byte("127.0.0.1:1")) || !bytes.Contains([]byte(err.Error()), []byte("nats-server")) {
		t.Errorf("got %v", err)
	}
}

func TestMessageNumbersCannotBeGuessed(t *testing.T) {
	s := bustest.Start(t)
	nc, err := nats.Connect(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	heard, err := nc.SubscribeSync("callyard.v1.call.*")
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	const calls = 64
	cl, seen := client(t, s.Connect(t, "router")), map[uint64]bool{}
	for range calls {
		send(t, cl, "w1", "echo", "{}")
		m, err := heard.NextMsg(10 * time.Second)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.ParseUint(m.Reply[strings.LastIndexByte(m.Reply, '.')+1:], 36, 64)
		if err != nil || n < 1<<32 || seen[n] || seen[n-1] {
			t.Fatalf("the reply subject %s: %v", m.Reply, err)
		}
		seen[n] = true
	}
}

func TestRoutersReceiveApproverAnnouncements(t *testing.T) {
	s := bustest.Start(t)
	c, approver := s.Connect(t, "router"), s.Connect(t, "approver")
	type said struct {
		id      string
		inForce []schema.InForce
		signer  string
	}
	heard := make(chan said, 4)
	w, err := c.WatchApprovers(func(id string, inForce []schema.InForce, signer string) { heard <- said{id, inForce, signer} })
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if err := errors.Join(c.Flush(t.Context()), approver.AnnounceApprover("a1", []schema.InForce{{Part: schema.PartPolicy, Version: "v"}}, "k1")); err != nil {
		t.Fatal(err)
	}
	if got := <-heard; got.id != "a1" || len(got.inForce) != 1 || got.inForce[0].Version != "v" || got.signer != "k1" {
		t.Errorf("heard %+v", got)
	}
}

package frontdoortest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// WorkerID is the ID of the worker of a fabric.
const WorkerID schema.WorkerID = "worker-1"

// Script configures the servers and answers of a worker.
type Script struct {
	// Servers are the servers that the worker announces.
	Servers []schema.Server
	// Definitions apply to each server without its own; see [Worker.Define].
	Definitions schema.Definitions
	// Call, if not nil, is called before each call and reports whether it answered it. Otherwise
	// the tool name selects the answer: fail, lines, large, hang; every other tool returns its
	// arguments.
	Call func(w *Worker, f *bus.CallFrame, to bus.ReplyTo) bool
}

// Tools returns the tools of [Script] and the additional ones. The irregular white space and the
// big number must be forwarded unchanged.
func Tools(more ...string) []json.RawMessage {
	tools := []json.RawMessage{
		json.RawMessage(`{"name":"echo",  "description":"Says it again", "inputSchema":{"type":"object"},"_meta":{"big":9007199254740993}}`),
		json.RawMessage(`{"name":"strict","inputSchema":{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"}},"required":["n"],"additionalProperties":false}}`),
	}
	for _, name := range []string{"steps", "fail", "rpc", "large", "hang", "late-error", "lines"} {
		tools = append(tools, json.RawMessage(`{"name":"`+name+`","inputSchema":{"type":"object"}}`))
	}
	for _, m := range more {
		tools = append(tools, json.RawMessage(m))
	}
	return tools
}

// Ready returns a server that is ready to serve calls.
func Ready(id schema.ServerID, risk int) schema.Server {
	return schema.Server{ID: id, State: schema.StateInitialized, Transport: "stdio", Risk: risk, Digest: digest(id), Slots: 32, Sessions: 1, Protocol: "2025-06-18"}
}

func digest(id schema.ServerID) string { return schema.Digest([]byte(id)) }

// Told is an answer of a client that the worker received.
type Told struct {
	Seq    uint64
	Number int64
	Object string
}

// Worker is a test worker that answers calls as its script says.
type Worker struct {
	// Listener sends the answers that a test writes itself.
	Listener *bus.Listener
	// Asked receives a value for each call of the tool hang, and Canceled the sequence number of
	// each such call that was canceled.
	Asked    chan struct{}
	Canceled chan uint64
	// Told receives the answers of clients to requests of the server.
	Told chan Told

	conn     *bus.Conn
	script   Script
	mu       sync.Mutex
	seen     []bus.CallFrame
	held     map[uint64]bus.ReplyTo
	announce schema.Worker
	defs     map[schema.ServerID]*bus.Description // by server
	full     func() bool
}

// StartWorker starts a worker that ends with the test.
func StartWorker(t testing.TB, conn *bus.Conn, id schema.WorkerID, script Script) *Worker {
	t.Helper()
	w := &Worker{
		conn: conn, script: script, held: make(map[uint64]bus.ReplyTo), defs: make(map[schema.ServerID]*bus.Description),
		Canceled: make(chan uint64, 256), Asked: make(chan struct{}, 256), Told: make(chan Told, 256),
	}
	w.announce = schema.Worker{
		ID: id, Name: "worker", Version: "test", Host: "host", PID: 4700, Started: time.Unix(1_700_000_000, 0).UTC(),
		Labels: map[string]string{"zone": "a"}, APIServers: true, Servers: script.Servers,
	}
	ready := make(chan struct{})
	hello, err := conn.WatchHello(func() {
		<-ready
		w.say()
	})
	must(t, err)
	w.Listener, err = conn.Listen(id, w)
	must(t, err)
	close(ready)
	stop := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		tick := time.NewTicker(bus.AnnounceEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.say()
			case <-stop:
				return
			}
		}
	})
	t.Cleanup(func() {
		close(stop)
		wait.Wait()
		hello.Stop()
		w.Listener.Close()
	})
	return w
}

func (w *Worker) say() {
	w.mu.Lock()
	a := w.announce
	w.mu.Unlock()
	_ = w.conn.Announce(&a)
}

// Change modifies the worker's announcement and sends it.
func (w *Worker) Change(f func(*schema.Worker)) {
	w.mu.Lock()
	a := w.announce
	a.Servers = slices.Clone(a.Servers)
	f(&a)
	w.announce = a
	w.mu.Unlock()
	w.say()
}

// Define sets the definitions of individual servers, adds missing servers, and announces
// everything at once. change, if not nil, modifies each of these servers.
func (w *Worker) Define(defs map[schema.ServerID]schema.Definitions, change func(*schema.Server)) {
	w.Change(func(me *schema.Worker) {
		for id, defs := range defs {
			d := &bus.Description{Digest: defs.Digest(), Definitions: &defs}
			w.defs[id] = d
			i := slices.IndexFunc(me.Servers, func(s schema.Server) bool { return s.ID == id })
			if i < 0 {
				i = len(me.Servers)
				me.Servers = append(me.Servers, schema.Server{ID: id, State: schema.StateInitialized, Transport: "stdio", Slots: 32, Sessions: 1})
			}
			me.Servers[i].Digest = d.Digest
			if change != nil {
				change(&me.Servers[i])
			}
		}
	})
}

// Refuse makes the worker refuse each call, as not started, for which full returns true.
func (w *Worker) Refuse(full func() bool) {
	w.mu.Lock()
	w.full = full
	w.mu.Unlock()
}

// Calls returns the received calls.
func (w *Worker) Calls() []bus.CallFrame {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

// Count returns the number of received calls.
func (w *Worker) Count() int { return len(w.Calls()) }

// Last returns the last received call. It panics if there is none.
func (w *Worker) Last() bus.CallFrame {
	calls := w.Calls()
	return calls[len(calls)-1]
}

// Hanging returns the sequence number of the last call, which must be of the tool hang, and the
// address of its replies.
func (w *Worker) Hanging() (to bus.ReplyTo, seq uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seq = w.seen[len(w.seen)-1].Seq
	return w.held[seq], seq
}

// Finish ends all calls of the tool hang and returns their number.
func (w *Worker) Finish() int {
	w.mu.Lock()
	held := w.held
	w.held = make(map[uint64]bus.ReplyTo)
	w.mu.Unlock()
	for seq, to := range held {
		w.Listener.Result(to, seq, &schema.Result{Body: []byte(`{"content":[]}`)})
	}
	return len(held)
}

// Result ends a call with a result.
func (w *Worker) Result(to bus.ReplyTo, seq uint64, body string) {
	w.Listener.Result(to, seq, &schema.Result{Body: []byte(body), ToolError: strings.Contains(body, `"isError":true`), InputRequired: strings.Contains(body, `"input_required"`)})
}

// Call handles a request of the bus.
func (w *Worker) Call(f *bus.CallFrame, to bus.ReplyTo) {
	result := func(body string) { w.Result(to, f.Seq, body) }
	switch f.Method {
	case bus.MethodDescribe:
		w.mu.Lock()
		d := w.defs[f.Server]
		w.mu.Unlock()
		if d == nil {
			d = &bus.Description{Digest: digest(f.Server), Definitions: &w.script.Definitions}
		}
		result(string(d.Encode()))
		return
	case bus.MethodStart, bus.MethodStop:
		w.serve(f)
		result(`{}`)
		return
	}
	w.mu.Lock()
	w.seen = append(w.seen, *f)
	full := w.full
	w.mu.Unlock()
	if full != nil && full() {
		w.Listener.Error(to, f.Seq, schema.Errorf(schema.KindUnavailable, "The server is full."), false, 0)
		return
	}
	if w.script.Call != nil && w.script.Call(w, f, to) {
		return
	}
	switch f.Tool {
	case "fail":
		result(`{"content":[],"isError":true}`)
	case "lines":
		result("{\"content\":\r\n[],\n\n\"a\":1\r}")
	case "large":
		result(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 3<<20) + `"}]}`)
	case "hang":
		w.mu.Lock()
		w.held[f.Seq] = to
		w.mu.Unlock()
		w.Asked <- struct{}{}
	default:
		result(fmt.Sprintf(`{"content":[{"type":"hologram","data":9007199254740993}] , "got":%s}`, f.Payload))
	}
}

// serve adds or removes a server, as requested over the API.
func (w *Worker) serve(f *bus.CallFrame) {
	w.Change(func(me *schema.Worker) {
		me.Servers = slices.DeleteFunc(me.Servers, func(s schema.Server) bool { return s.ID == f.Server })
		if f.Method == bus.MethodStart {
			me.Servers = append(me.Servers, schema.Server{ID: f.Server, State: schema.StateInitialized, Transport: "stdio", PID: 4712, Risk: 2, Slots: 4, Digest: digest(f.Server)})
		}
	})
}

// Cancel cancels a call of the tool hang.
func (w *Worker) Cancel(seq uint64) {
	w.mu.Lock()
	to, ok := w.held[seq]
	delete(w.held, seq)
	w.mu.Unlock()
	if ok {
		w.Listener.Error(to, seq, schema.Errorf(schema.KindCanceled, "The call was canceled."), true, 0)
		w.Canceled <- seq
	}
}

// Answer handles an answer of a client; see [bus.Answerer].
func (w *Worker) Answer(seq uint64, number int64, object []byte) {
	w.Told <- Told{seq, number, string(object)}
}

package dispatch

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestAReplyThatNATSTookWithItIsAskedForAtOnce(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	got := make(chan struct{}, 2)
	var asked atomic.Int64
	startScripted(t, srv, r, "w", func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
		if f.Method != bus.MethodFates {
			got <- struct{}{} // its reply is lost with NATS
			return
		}
		asked.Add(1)
		var q bus.Question
		if err := json.Unmarshal(f.Payload, &q); err != nil {
			t.Error(err)
		}
		var answer []byte
		for _, id := range q.CallIDs {
			fate := bus.Fate{CallID: id, State: bus.FateEnded, Result: &schema.Result{Body: []byte(`{"of":"` + id + `"}`), ToolError: true}}
			if id == "call_failed" {
				fate.Result, fate.Err = nil, schema.Errorf(schema.KindProtocol, "It has ended badly.")
			}
			answer = bus.AppendFate(answer, &fate)
		}
		w.l.Result(to, f.Seq, &schema.Result{Body: answer})
	})
	type end struct {
		res *schema.Result
		err error
	}
	run := func(id string) <-chan end {
		ended := make(chan end, 1)
		c := call(false)
		c.ID, c.Durable, c.Timeout = id, true, 10*time.Minute
		go func() {
			res, err := r.Do(context.Background(), c)
			ended <- end{res, err}
		}()
		<-got
		return ended
	}
	done, failed := run("call_done"), run("call_failed")
	srv.Stop()
	srv.Again(t)
	if e := <-done; e.err != nil || string(e.res.Body) != `{"of":"call_done"}` || !e.res.ToolError || e.res.Worker != "w" {
		t.Errorf("ended as %+v, %v", e.res, e.err)
	}
	if e := <-failed; schema.KindOf(e.err) != schema.KindProtocol || schema.AsError(e.err).CallID != "call_failed" {
		t.Errorf("ended as %+v, %v", e.res, e.err)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the worker was asked %d times about two calls", n)
	}
	idle(t, r)
}

func TestWhoListensHearsOfCanceledCallsOfOtherRouters(t *testing.T) {
	srv := bustest.Start(t)
	one, other := startRouter(t, srv), startRouter(t, srv)
	heard := make(chan string, 10)
	stop := one.OnCancel(func(id string) { heard <- id })
	if err := other.Cancel("call_1"); err != nil {
		t.Fatal(err)
	}
	if id := <-heard; id != "call_1" {
		t.Errorf("heard of %s", id)
	}
	stop()
	last := make(chan string, 1)
	defer one.OnCancel(func(id string) { last <- id })()
	if err := other.Cancel("call_2"); err != nil {
		t.Fatal(err)
	}
	<-last
	if len(heard) != 0 {
		t.Errorf("after its end it hears of %s", <-heard)
	}
}

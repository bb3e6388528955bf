package dispatch

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// partitioned returns a router of a cluster whose worker fell silent with a call in flight, and a
// channel for the end of the call.
func partitioned(t *testing.T, c *schema.Call) (r *Router, ended <-chan string) {
	srv := bustest.Start(t)
	srv.URL += "," + strings.Replace(srv.URL, "127.0.0.1", "localhost", 1)
	return silent(t, srv, c, false)
}

// silent returns a router whose worker fell silent with a call in flight, and a channel for the end of
// the call.
func silent(t *testing.T, srv *bustest.Server, c *schema.Call, deaf bool) (r *Router, ended <-chan string) {
	r = startRouter(t, srv)
	got := make(chan struct{}, 1)
	startScripted(t, srv, r, "w", func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
		if f.Method != bus.MethodOutcomes {
			got <- struct{}{} // its reply is lost
			return
		}
		w.outcomes(t, f, to, func(*bus.OutcomeQuery, schema.CallID) bus.Outcome {
			return bus.Outcome{State: bus.OutcomeEnded, Result: &schema.Result{Body: []byte(`"ran once"`)}}
		})
	})
	c.Timeout = 10 * time.Minute
	end := make(chan string, 1)
	go func() {
		res, err := r.Do(context.Background(), c)
		if err != nil {
			end <- string(schema.KindOf(err))
			return
		}
		end <- string(res.Body)
	}()
	<-got
	r.RemoveWorker("w", deaf)
	return r, end
}

func TestCallWaitsForPartitionedWorker(t *testing.T) {
	r, ended := partitioned(t, call(false))
	r.giveUp(time.Now())
	select {
	case how := <-ended:
		t.Fatalf("it ended as %s before its worker could come back", how)
	default:
	}
	r.SetWorker(&schema.Worker{ID: "w", Servers: []schema.Server{{ID: "s", State: schema.StateInitialized, Slots: 8}}})
	if how := <-ended; how != `"ran once"` {
		t.Errorf("it ended as %s", how)
	}
	idle(t, r)
}

func TestCallWaitsForItsWorkerIfNATSDeliversNothing(t *testing.T) {
	for _, deaf := range []bool{true, false} {
		r, ended := silent(t, bustest.Start(t), call(false), deaf)
		if !deaf { // only the worker is silent
			if how := <-ended; how != string(schema.KindOutcomeUnknown) {
				t.Errorf("it ended as %s", how)
			}
			continue
		}
		r.giveUp(time.Now())
		r.SetWorker(&schema.Worker{ID: "w", Servers: []schema.Server{{ID: "s", State: schema.StateInitialized, Slots: 8}}})
		if how := <-ended; how != `"ran once"` {
			t.Errorf("it ended as %s", how)
		}
		idle(t, r)
	}
}

func TestWorkerThatDoesNotReconnectIsGivenUp(t *testing.T) {
	r, ended := partitioned(t, call(false))
	r.giveUp(time.Now().Add(returnGrace + time.Second))
	if how := <-ended; how != string(schema.KindOutcomeUnknown) {
		t.Errorf("it ended as %s", how)
	}
	idle(t, r)
}

func TestSafeCallDoesNotWaitForPartitionedWorker(t *testing.T) {
	r, ended := partitioned(t, call(true))
	if how := <-ended; how != string(schema.KindUnavailable) { // there is no other worker
		t.Errorf("it ended as %s", how)
	}
	idle(t, r)
}

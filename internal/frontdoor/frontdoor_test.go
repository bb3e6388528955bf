package frontdoor_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, srv *bustest.Server, change func(*settings.FrontDoor)) (*frontdoor.FrontDoor, error) {
	t.Helper()
	c := settings.FrontDoorDefaults()
	c.Listen, c.DrainDelay = "127.0.0.1:0", 200*time.Millisecond
	if change != nil {
		change(&c)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return frontdoor.Start(ctx, frontdoor.Options{
		Config: c, Conn: srv.Connect(t, "front"), Metrics: telemetry.NewMetrics(), Log: slog.New(slog.DiscardHandler), Version: "test", Failed: make(chan error, 1),
	})
}

func stop(t testing.TB, d *frontdoor.FrontDoor) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := d.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func TestNonLoopbackFrontDoorRequiresKeys(t *testing.T) {
	srv := bustest.Start(t)
	for _, listen := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:80", "example.com:80"} {
		if d, err := open(t, srv, func(c *settings.FrontDoor) { c.Listen = listen }); err == nil {
			stop(t, d)
			t.Errorf("%s: it opened without keys", listen)
		} else if !strings.Contains(err.Error(), "keys") {
			t.Errorf("%s: %v", listen, err)
		}
	}
	_, hash := authn.Generate()
	d, err := open(t, srv, func(c *settings.FrontDoor) {
		c.Listen, c.Keys = "0.0.0.0:0", []authn.Key{{Name: "ci", Hash: hash}}
	})
	if err != nil {
		t.Fatalf("with a key: %v", err)
	}
	stop(t, d)
}

func TestAddressInUseFailsBeforeStreamsAreMade(t *testing.T) {
	srv := bustest.Start(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	d, err := open(t, srv, func(c *settings.FrontDoor) { c.Listen = taken.Addr().String() })
	if err == nil {
		stop(t, d)
		t.Fatal("it opened")
	}
	if !strings.Contains(err.Error(), "is another front door running? --listen names another address") {
		t.Errorf("the error is %v", err)
	}
	if n := srv.Streams(t); n > 0 {
		t.Errorf("it has made %d streams", n)
	}
}

// held is a worker that holds every call until it is released.
type held struct {
	l    *bus.Listener
	up   chan struct{}
	got  chan struct{}
	free chan struct{}
	wait sync.WaitGroup
}

func (h *held) Call(f *bus.CallFrame, to bus.ReplyTo) {
	<-h.up
	seq, method, body := f.Seq, f.Method, f.Payload
	h.wait.Go(func() {
		if method != "" {
			h.l.Result(to, seq, &schema.Result{Body: []byte(`{"digest":"d","definitions":{"tools":[{"name":"t"}]}}`)})
			return
		}
		h.got <- struct{}{}
		<-h.free
		h.l.Result(to, seq, &schema.Result{Body: body})
	})
}
func (*held) Cancel(uint64) {}

func TestShutdownIsAnnouncedAndFinishesRunningCalls(t *testing.T) {
	srv := bustest.Start(t)
	conn := srv.Connect(t, "worker")
	h := &held{up: make(chan struct{}), got: make(chan struct{}, 1), free: make(chan struct{})}
	l, err := conn.Listen("w", h)
	if err != nil {
		t.Fatal(err)
	}
	h.l = l
	close(h.up)
	defer l.Close()
	defer h.wait.Wait()
	d, err := open(t, srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + d.Addr()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	announce := func() {
		if err := conn.Announce(&schema.Worker{ID: "w", Servers: []schema.Server{{ID: "s", State: schema.StateInitialized, Slots: 4, Digest: "d"}}}); err != nil {
			t.Error(err)
		}
	}
	changes, cancel := d.Catalog().Changes()
	defer cancel()
	announce()
	for {
		if _, err := d.Catalog().Tool("s", "t"); err == nil {
			break
		}
		<-changes
	}
	var calls sync.WaitGroup
	calls.Go(func() {
		resp, err := client.Post(base+"/servers/s/tools/t", "application/json", strings.NewReader(`{"n":1}`))
		if err != nil {
			t.Errorf("the call under way: %v", err)
			return
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || string(body) != `{"n":1}` {
			t.Errorf("the call under way: %q, %v", body, err)
		}
	})
	<-h.got
	over := make(chan time.Time)
	asked := d.DrainUntil(over)
	release := sync.OnceFunc(func() {
		close(over)
		close(h.free)
	})
	defer release()
	calls.Go(func() { stop(t, d) })
	polltest.Until(t, "readiness goes red before the end", func() bool {
		resp, err := client.Get(base + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return false
		}
		if resp.StatusCode != http.StatusServiceUnavailable || !resp.Close {
			t.Errorf("a front door that drains must ask clients to close their connections: %d, close %t", resp.StatusCode, resp.Close)
		}
		return true
	})
	if delay := <-asked; delay != 200*time.Millisecond {
		t.Errorf("the delay is %s", delay)
	}
	release()
	calls.Wait()
}

func TestStoresUseASeparateNATSConnection(t *testing.T) {
	calls, stored := bustest.Start(t), bustest.Start(t)
	c := settings.FrontDoorDefaults()
	c.Listen, c.DrainDelay = "127.0.0.1:0", 0
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	d, err := frontdoor.Start(ctx, frontdoor.Options{
		Config: c, Conn: calls.Connect(t, "front"), Stored: stored.Connect(t, "stored"), Metrics: telemetry.NewMetrics(), Log: slog.New(slog.DiscardHandler), Version: "test",
		Failed: make(chan error, 1),
	})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, "POST", "http://"+d.Addr()+"/batches", strings.NewReader(`{"open":true}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	a, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = a.Body.Close()
	if a.StatusCode != http.StatusCreated {
		t.Errorf("POST /batches: %d", a.StatusCode)
	}
	for _, where := range []struct {
		srv  *bustest.Server
		want int
	}{{calls, 0}, {stored, 1}} {
		s, err := journal.Open(ctx, where.srv.Connect(t, "look"), journal.Options{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if page, _ := s.List(schema.AllTenants(), journal.Filter{Kind: journal.Batch}, ""); len(page) != where.want {
			t.Errorf("%d batches are stored there, not %d", len(page), where.want)
		}
		s.Close()
	}
	if err := d.Ready(); err != nil {
		t.Error(err)
	}
	await := func(ready bool) {
		t.Helper()
		polltest.Until(t, fmt.Sprintf("ready is %t", ready), func() bool { return (d.Ready() == nil) == ready })
	}
	stored.Stop()
	await(false) // nothing can be stored
	stored.Again(t)
	await(true)
	calls.Stop()
	stored.Stop()
	await(false)
	if err := d.Ready(); strings.Count(err.Error(), "NATS is") != 1 {
		t.Errorf("it says more than once that NATS is down: %v", err)
	}
	calls.Again(t)
	stored.Again(t)
	await(true)
	stop(t, d)
}

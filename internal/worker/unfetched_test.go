package worker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/worker"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestAWorkerStartsNoCallsWhileItHoldsTooManyResultsThatNobodyFetched(t *testing.T) {
	cfg, srv := settings.WorkerDefaults(), bustest.Start(t)
	served, err := worker.Serve(&cfg, []config.ServerEntry{entry("calm", mcptest.Echo)})
	if err != nil {
		t.Fatal(err)
	}
	w, err := worker.Start(worker.Options{Name: "w", Version: "test", Conn: srv.Connect(t, "w"), Servers: served, MaxUnfetched: 1 << 20, Metrics: telemetry.NewMetrics(), Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, w) })
	_, catalog := front(t, srv)
	await(t, catalog, "the server is ready", hasTools(catalog, "calm"))
	client, err := srv.Connect(t, "anybody").NewClient(schema.NewID("router"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	send := func(tool, arguments string) (bus.ReplyFrame, answer) {
		got := make(answer, 16)
		if _, err := client.Send(w.ID(), &bus.CallFrame{ID: schema.NewCallID(), Server: "calm", Tool: tool, Attempt: 1, Budget: 20 * time.Second, Payload: []byte(arguments)}, got); err != nil {
			t.Fatal(err)
		}
		return <-got, got
	}
	first, parts := send("big", `{"bytes":2000000}`)
	if first.Kind != bus.ReplyFirst {
		t.Fatalf("%d %s", first.Kind, first.Payload)
	}
	if f, _ := send("echo", `{}`); f.Kind != bus.ReplyError || f.Started || !strings.Contains(string(f.Payload), "have not fetched yet") || !strings.Contains(string(f.Payload), `"retryable":true`) {
		t.Errorf("kind %d, started %v: %s", f.Kind, f.Started, f.Payload)
	}
	if _, err := client.Fetch(t.Context(), w.ID(), first, parts); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "a call after the result was fetched", func() bool {
		f, _ := send("echo", `{}`)
		return f.Kind == bus.ReplyResult
	})
}

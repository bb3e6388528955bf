package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch/attach"
	"github.com/callyard/callyard/internal/launch/attach/attachtest"
	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/worker"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

func attachEntry(id string, hashes ...string) config.ServerEntry {
	return config.ServerEntry{ID: id, Type: config.TypeAttach, Attach: &config.Attach{Keys: hashes}}
}

func attachWorker() *settings.Worker {
	c := settings.WorkerDefaults()
	c.Attach.Listen = "127.0.0.1:0"
	return &c
}

func serveAll(t *testing.T, entries ...config.ServerEntry) []worker.Served {
	t.Helper()
	served, err := worker.Serve(attachWorker(), entries)
	if err != nil {
		t.Fatal(err)
	}
	return served
}

// startAttach starts a worker with the entries and returns the address where programs attach.
func startAttach(t *testing.T, srv *bustest.Server, entries ...config.ServerEntry) (*worker.Worker, string) {
	t.Helper()
	w, err := worker.Start(worker.Options{Name: "w", Version: "test", Conn: srv.Connect(t, "w"), Servers: serveAll(t, entries...), Metrics: telemetry.NewMetrics(), Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	door := httptest.NewServer(w.AttachHandler())
	t.Cleanup(door.Close)
	return w, "ws" + strings.TrimPrefix(door.URL, "http")
}

func TestOnlyTheKeyOfAServerAttachesItsPrograms(t *testing.T) {
	srv := bustest.Start(t)
	key, hash := authn.Generate()
	other, otherHash := authn.Generate()
	unknown, _ := authn.Generate()
	w, url := startAttach(t, srv, attachEntry("prices", hash), attachEntry("stock", otherHash), entry("echo", mcptest.Echo))
	defer stop(t, w)
	if err := w.Ready(); err != nil && strings.Contains(err.Error(), "prices") {
		t.Errorf("readiness waits for programs: %v", err)
	}
	for name, c := range map[string]struct {
		server, key string
		status      int
	}{
		"no key": {"prices", "", http.StatusUnauthorized}, "an unknown key": {"prices", unknown, http.StatusUnauthorized},
		"the key of another server": {"prices", other, http.StatusForbidden}, "no such server": {"none", key, http.StatusNotFound},
		"a server of another kind": {"echo", key, http.StatusNotFound}, "another path": {"prices/x", key, http.StatusNotFound},
	} {
		a, err := (&attachtest.Program{}).Attach(t.Context(), url, c.server, c.key)
		var refused *attachtest.Refusal
		if !errors.As(err, &refused) || refused.Status != c.status {
			t.Errorf("%s: %v, want %d", name, err, c.status)
		}
		if err == nil {
			a.Kill()
		}
	}
	r, c := front(t, srv)
	a, err := (&attachtest.Program{}).Attach(t.Context(), url, "prices", key)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Kill()
	await(t, c, "prices is ready", hasTools(c, "prices"))
	if res, err := r.Do(context.Background(), echoCall("prices", "hé")); err != nil || !strings.Contains(string(res.Body), `{"text":"hé"}`) {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestRemovedKeyDisconnectsItsPrograms(t *testing.T) {
	srv := bustest.Start(t)
	old, oldHash := authn.Generate()
	next, nextHash := authn.Generate()
	w, url := startAttach(t, srv, attachEntry("prices", oldHash))
	defer stop(t, w)
	_, c := front(t, srv)
	a, err := (&attachtest.Program{}).Attach(t.Context(), url, "prices", old)
	if err != nil {
		t.Fatal(err)
	}
	await(t, c, "prices is ready", hasTools(c, "prices"))
	w.Apply(serveAll(t, attachEntry("prices", oldHash, nextHash)))
	b, err := (&attachtest.Program{}).Attach(t.Context(), url, "prices", next)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Kill()
	w.Apply(serveAll(t, attachEntry("prices", nextHash)))
	if code := a.Wait(); code != attach.CodeAway {
		t.Errorf("closed with %d", code)
	}
	var refused *attachtest.Refusal
	if _, err := (&attachtest.Program{}).Attach(t.Context(), url, "prices", old); !errors.As(err, &refused) || refused.Status != http.StatusUnauthorized {
		t.Errorf("the old key: %v", err)
	}
	await(t, c, "the other program is there", hasTools(c, "prices"))
}

func TestStoppingWorkerWaitsForCallsOfAttachedPrograms(t *testing.T) {
	srv := bustest.Start(t)
	key, hash := authn.Generate()
	w, url := startAttach(t, srv, attachEntry("prices", hash))
	r, c := front(t, srv)
	came, goOn := make(chan struct{}), make(chan struct{})
	a, err := (&attachtest.Program{Call: func(context.Context, string, json.RawMessage) string {
		close(came)
		<-goOn
		return `{"content":[]}`
	}}).Attach(t.Context(), url, "prices", key)
	if err != nil {
		t.Fatal(err)
	}
	await(t, c, "prices is ready", hasTools(c, "prices"))
	ended := make(chan error, 1)
	go func() {
		_, err := r.Do(context.Background(), echoCall("prices", "x"))
		ended <- err
	}()
	<-came
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop(t, w)
	}()
	await(t, c, "the worker drains", func() bool {
		workers := c.Workers()
		return len(workers) == 0 || workers[0].Draining
	})
	var refused *attachtest.Refusal
	if _, err := (&attachtest.Program{}).Attach(t.Context(), url, "prices", key); !errors.As(err, &refused) || refused.Status != http.StatusServiceUnavailable {
		t.Errorf("a program that comes now: %v", err)
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Errorf("the call: %v", err)
	}
	<-stopped
	if code := a.Wait(); code != attach.CodeAway {
		t.Errorf("closed with %d", code)
	}
}

func TestFaultsOfAttachEntriesAreFoundAtTheStart(t *testing.T) {
	_, hash := authn.Generate()
	key, _ := authn.Generate()
	closed := settings.WorkerDefaults()
	for name, c := range map[string]struct {
		cfg     *settings.Worker
		entries []config.ServerEntry
		want    string
	}{
		"no listener":         {&closed, []config.ServerEntry{attachEntry("a", hash)}, "set worker.attach.listen"},
		"one key for two":     {attachWorker(), []config.ServerEntry{attachEntry("a", hash), attachEntry("b", hash)}, "create a separate key for each"},
		"no hash":             {attachWorker(), []config.ServerEntry{attachEntry("a", "secret")}, "64 hex digits"},
		"the key, not a hash": {attachWorker(), []config.ServerEntry{attachEntry("a", key)}, "is the key itself"},
	} {
		if _, err := worker.Serve(c.cfg, c.entries); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

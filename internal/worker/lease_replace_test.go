package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/launch/attach/attachtest"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestAReplacedServerFinishesTheCallsOfItsEpisodes(t *testing.T) {
	began, goOn := make(chan struct{}, 1), make(chan struct{})
	program := attachtest.Program{Call: func(context.Context, string, json.RawMessage) string {
		began <- struct{}{}
		<-goOn
		return `{"content":[]}`
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a, err := program.Accept(w, r); err == nil {
			a.Wait()
		}
	}))
	t.Cleanup(server.Close)
	srv := bustest.Start(t)
	e, err := config.ParseServer("s", json.RawMessage(fmt.Sprintf(`{"url":%q}`, "ws"+strings.TrimPrefix(server.URL, "http"))))
	if err != nil {
		t.Fatal(err)
	}
	w := start(t, srv, "w", false, e)
	t.Cleanup(func() { stop(t, w) })
	router, cat := front(t, srv)
	await(t, cat, "the server", hasTools(cat, "s"))
	ask := func(method string) error {
		_, err := router.Request(t.Context(), w.ID(), method, "s", []byte(`{"id":"episode"}`), 10*time.Second)
		return err
	}
	if err := ask(bus.MethodOpenLease); err != nil {
		t.Fatal(err)
	}
	call := echoCall("s", "x")
	call.Lease = schema.Lease{Worker: w.ID(), ID: "episode"}
	over := make(chan error, 1)
	go func() {
		_, err := router.Do(context.Background(), call)
		over <- err
	}()
	<-began
	if err := ask(bus.MethodRestart); err != nil {
		t.Fatal(err)
	}
	// The new instance does not know the lease, so its id is free there.
	polltest.Until(t, "the server is replaced", func() bool { return ask(bus.MethodOpenLease) == nil })
	close(goOn)
	if err := <-over; err != nil {
		t.Errorf("the call failed: %v", err)
	}
}

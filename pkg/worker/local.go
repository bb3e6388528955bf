package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/embedded"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/lifecycle"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/setup"
	"github.com/callyard/callyard/internal/setup/frontdoorrole"
	"github.com/callyard/callyard/internal/setup/workerrole"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/worker"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// LocalOption is a server or a setting for [Local].
type LocalOption interface{ local(*localOptions) }

type localOptions struct {
	servers []*Server
	policy  string
	nats    string
	log     *slog.Logger
}

func (s *Server) local(o *localOptions) { o.servers = append(o.servers, s) }

type localFunc func(*localOptions)

func (f localFunc) local(o *localOptions) { f(o) }

// LocalPolicy sets the path of the policy file. Without one, risk levels and annotations
// decide.
func LocalPolicy(path string) LocalOption {
	return localFunc(func(o *localOptions) { o.policy = path })
}

// LocalNATS makes the fabric use a NATS server with JetStream instead of an embedded one, so
// that stored data outlives the program.
func LocalNATS(url string) LocalOption { return localFunc(func(o *localOptions) { o.nats = url }) }

// LocalLogger sets the logger. By default nothing is logged.
func LocalLogger(log *slog.Logger) LocalOption {
	return localFunc(func(o *localOptions) { o.log = log })
}

// Fabric is a complete fabric inside a program: a front door, a worker, and a NATS server. It
// is safe for concurrent use.
type Fabric struct {
	door  *frontdoor.FrontDoor
	calls *calls.Calls
	end   context.CancelFunc
	done  chan struct{}
	err   error // of the run; read after done is closed
}

// HeldError is returned for a call that waits for an approval and has not run.
// [Fabric.Confirm] confirms or denies it with Token. Token is "" if the policy requires an
// approval by people other than the caller. They decide in the approver, which a local fabric
// does not have.
type HeldError struct {
	CallID     schema.CallID
	ApprovalID schema.ApprovalID
	Token      string
	Server     schema.ServerID
	Tool       string
	Reasons    []string
	Expires    time.Time
}

// Error returns a message with the tool and the server.
func (e *HeldError) Error() string {
	return fmt.Sprintf("the call of %s on %s needs an approval and has not run", e.Tool, e.Server)
}

// startTimeout limits the start of a local fabric.
const startTimeout = time.Minute

// Local runs a fabric with the servers in this process. It returns when every server is
// ready. Close the fabric with [Fabric.Close].
//
// Without [LocalNATS] it runs an embedded NATS server with a temporary directory, which is
// removed at the end. It listens on no address; [Fabric.Handler] serves the REST API and the
// MCP endpoint. The error reports all registration errors, all faults of the policy, or the
// part that failed to start.
func Local(options ...LocalOption) (*Fabric, error) {
	var o localOptions
	for _, option := range options {
		option.local(&o)
	}
	if o.log == nil {
		o.log = quiet()
	}
	served, err := finish(o.servers)
	if err != nil {
		return nil, err
	}
	for _, s := range o.servers {
		s.logTo(o.log)
	}
	var policy *risk.Holder
	if o.policy != "" {
		p, err := risk.ReadFile(o.policy)
		if err != nil {
			return nil, fmt.Errorf("reading the policy: %w", err)
		}
		policy = risk.NewHolder(p)
	}
	dir, err := os.MkdirTemp("", "callyard-local-")
	if err != nil {
		return nil, fmt.Errorf("creating the data folder: %w", err)
	}
	f, err := startFabric(&o, served, policy, dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return f, nil
}

// startFabric runs the parts.
func startFabric(o *localOptions, served []worker.Served, policy *risk.Holder, dir string) (*Fabric, error) {
	cfg := &setup.Config{File: settings.Defaults()}
	cfg.Data = dir
	if err := cfg.OwnKey(); err != nil {
		return nil, err
	}
	if o.nats != "" {
		cfg.NATS.URL = o.nats
	}
	cfg.FrontDoor.DrainDelay = 0
	var nats *embedded.Server
	var local bus.Local
	connect := func(ctx context.Context, name string, keep bool) (*bus.Conn, error) {
		if o.nats != "" {
			return cfg.Connect(ctx, name, keep, o.log)
		}
		return bus.Connect(ctx, bus.Options{InProcess: nats, Name: name, Local: &local, KeepWhileDown: keep, Log: o.log})
	}
	holder, door := workerrole.Setup{Own: served}, frontdoorrole.Setup{NoListener: true}
	held, err := holder.Role().Serve(&cfg.Worker, nil)
	if err != nil {
		return nil, err
	}
	held.Apply()
	f := &Fabric{done: make(chan struct{})}
	started := make(chan struct{})
	m := telemetry.NewMetrics()
	parts := []lifecycle.Part{
		holder.Part(cfg, connect, policy, m, o.log, func(*worker.Worker) {}),
		door.Part(cfg, connect, policy, m, o.log, func(d *frontdoor.FrontDoor) { f.door, f.calls = d, d.Calls() }),
		{Name: "fabric", Start: func(ctx context.Context) error {
			close(started)
			return nil
		}, Stop: func(context.Context) error { return nil }},
	}
	if o.nats == "" {
		parts = append([]lifecycle.Part{{
			Name: "embedded NATS",
			Start: func(context.Context) (err error) {
				nats, err = embedded.Start(embedded.Options{Dir: dir, Log: o.log})
				return err
			},
			Stop: func(context.Context) error { return nats.Close() },
		}}, parts...)
	}
	ctx, end := context.WithCancel(context.Background())
	f.end = end
	go func() {
		defer close(f.done)
		f.err = errors.Join(lifecycle.RunSignals(ctx, o.log, nil, parts...), os.RemoveAll(dir))
	}()
	select {
	case <-started:
	case <-f.done:
		end()
		return nil, f.err
	}
	if err := f.awaitServers(served); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// awaitServers waits until the front door offers the tools of every server.
func (f *Fabric) awaitServers(served []worker.Served) error {
	changes, cancel := f.door.Catalog().Changes()
	defer cancel()
	timer := time.NewTimer(startTimeout)
	defer timer.Stop()
	for {
		missing := ""
		for i := range served {
			id := served[i].Session.Spec.ID
			s, err := f.door.Catalog().Server(id)
			if _, defsErr := f.door.Catalog().Definitions(id); err != nil || defsErr != nil || s.State != schema.StateInitialized {
				missing = string(id)
			}
		}
		if missing == "" {
			return nil
		}
		select {
		case <-changes:
		case <-f.done:
			return errors.New("the fabric has ended")
		case <-timer.C:
			return fmt.Errorf("server %q was not ready within %v", missing, startTimeout)
		}
	}
}

// Call calls a tool and returns its result. A result with ToolError is not an error. args is
// the arguments object: JSON as []byte or json.RawMessage, which is sent to the tool verbatim,
// or a value that encoding/json encodes as an object. nil means {}.
//
// The error is a *[HeldError] if the call waits for an approval, and a *schema.Error if it was
// refused, failed, or has an unknown outcome.
func (f *Fabric) Call(ctx context.Context, server schema.ServerID, tool string, args any) (*schema.Result, error) {
	raw, err := argumentsOf(args)
	if err != nil {
		return nil, schema.Errorf(schema.KindInvalidRequest, "The arguments cannot be written as JSON: %w", err)
	}
	call := &schema.Call{ID: schema.NewCallID(), Server: server, Tool: tool, Arguments: raw, Principal: localPrincipal}
	out, err := f.calls.Submit(ctx, calls.Request{Call: call})
	switch {
	case err != nil:
		return nil, err
	case out.Held != nil:
		h := out.Held
		return nil, &HeldError{CallID: h.CallID, ApprovalID: h.ApprovalID, Token: h.Token, Server: h.Server, Tool: h.Tool, Reasons: h.Reasons, Expires: h.Expires}
	case out.Accepted != nil: // the policy requires a durable call
		s, err := f.calls.Await(ctx, out.Accepted, localPrincipal)
		if err != nil {
			return nil, err
		}
		return f.calls.Result(ctx, s)
	}
	return out.Result, nil
}

// Change is a change in a fabric: a tool was added, removed, changed, enabled or disabled, a
// server went offline or is available again, or a set changed.
type Change struct {
	// Type is "tool.added", "tool.removed", "tool.changed", "tool.enabled", "tool.disabled",
	// "server.added", "server.removed", "server.online", "server.offline", "set.added",
	// "set.removed" or "set.changed".
	Type      string
	At        time.Time
	Server    schema.ServerID
	Tool, Set string
	// Actor is the principal that enabled, disabled or stored it, or empty if there is none.
	Actor string
	// Reason is the reason why it is disabled or offline.
	Reason string
}

// Watch calls each with every change of the fabric from now on, on one goroutine. stop ends the
// watch and waits for that goroutine. Changes within a few milliseconds may be reported as one.
func (f *Fabric) Watch(each func(Change)) (stop func()) {
	return f.door.Catalog().Watch(func(c catalog.FleetChange) {
		if !c.Tenant.Is(schema.DefaultTenant) { // a set of another tenant
			return
		}
		each(Change{Type: string(c.Type), At: c.At, Server: c.Server, Tool: c.Tool, Set: c.Set, Actor: c.Actor, Reason: c.Reason})
	})
}

// localPrincipal is the caller of a local fabric.
var localPrincipal = schema.Principal{Name: "local"}

func argumentsOf(args any) ([]byte, error) {
	switch a := args.(type) {
	case nil:
		return []byte("{}"), nil
	case []byte:
		return a, nil
	case json.RawMessage:
		return a, nil
	}
	return json.Marshal(args)
}

// Confirm confirms or denies a held call. A confirmed call runs, and Confirm returns its result.
// For a denied call it returns nil. token is the Token of a [HeldError] and is valid once.
func (f *Fabric) Confirm(ctx context.Context, token string, confirm bool) (*schema.Result, error) {
	done, err := f.calls.Confirm(ctx, calls.Confirmation{Token: token, Confirm: confirm, Principal: localPrincipal, Attempt: schema.NewID("confirm")})
	if err != nil {
		return nil, err
	}
	return done.Result, nil
}

// Tools returns the definitions of all tools in the format of a provider's API. format is
// "openai", "openai-responses", "anthropic", "gemini" or "mcp".
func (f *Fabric) Tools(ctx context.Context, format string) (json.RawMessage, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/tools?format="+url.QueryEscape(format), nil)
	if err != nil {
		return nil, err
	}
	w := &recorder{header: http.Header{}}
	f.Handler().ServeHTTP(w, r)
	if w.status != http.StatusOK {
		return nil, fmt.Errorf("listing the tools: %s", w.body)
	}
	return w.body, nil
}

// recorder records one response of the handler.
type recorder struct {
	header http.Header
	status int
	body   []byte
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *recorder) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.body = append(w.body, b...)
	return len(b), nil
}

// Handler serves the REST API and the MCP endpoint (/mcp) of the fabric without API keys: every
// client that can reach it may call every tool.
func (f *Fabric) Handler() http.Handler { return f.door.Handler() }

// Close accepts no new calls, finishes calls in flight, and stops everything that Local started.
// It may be called more than once.
func (f *Fabric) Close() error {
	f.end()
	<-f.done
	return f.err
}

package frontdoor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/eval/runs"
	"github.com/callyard/callyard/internal/frontdoor/mcp"
	"github.com/callyard/callyard/internal/frontdoor/rest"
	"github.com/callyard/callyard/internal/kit/httpguard"
	"github.com/callyard/callyard/internal/listen"
	"github.com/callyard/callyard/internal/waits"
	"github.com/callyard/callyard/internal/webhook"
	"github.com/callyard/callyard/pkg/schema"
)

// serve creates the endpoints and opens the listener, if there is one.
func (d *FrontDoor) serve() error {
	o := d.o
	var checkCallback func(string, schema.TenantID) error
	var outbox *webhook.Sender
	if d.notifier != nil {
		outbox = d.notifier.sender
		checkCallback = func(url string, tenant schema.TenantID) error {
			if e := outbox.Check(url, tenant); e != nil {
				return e // avoid a nil pointer in a non-nil interface
			}
			return nil
		}
	}
	pages, err := httpguard.New(o.Config.Origins, d.callers.Configured)
	if err != nil {
		return err
	}
	d.calls = calls.New(calls.Options{
		Gate: d.gate, Chain: d.chain, Desk: d.stores.approvals.Desk, Ledger: d.stores.approvals.Ledger, Release: d.releaser.Run, Durable: d.durable, Records: d.stores.records, Usage: d.stores.usage, Traced: o.Traces != nil,
		CheckCallback: checkCallback, ApprovalLost: o.Lost.lostApproval(), FrontDoor: d.id,
	})
	waiting := waits.New(waits.All, waits.Each)
	handler, err := rest.New(rest.Options{
		Catalog: d.catalog, Calls: d.calls, Router: d.router, Keys: d.callers, Issued: d.issued, Origin: pages, Metrics: o.Metrics, Traces: o.Traces, Log: o.Log, Version: o.Version, Started: d.began,
		Ready: d.Ready, Draining: d.draining.Load, InForce: o.InForce, Losses: o.Lost.health(), AllowAddServers: o.Config.AddServers,
		AcceptGroups: o.Config.AcceptGroups, Accepted: d.recordAccepted, Acts: d.recordAct, Audit: d.stores.approvals.Audit.Reader, Policy: d.policyText,
		Tenants: o.Tenants, Told: o.Told, Policies: o.Policy, EraseTenant: d.eraseTenant, Webhooks: outbox,
		Waits: waiting, Batches: d.durable.Batches, Evaluations: evaluationsIn(o.Config.Evaluations), ApproverURL: strings.TrimRight(o.Config.ApproverURL, "/"),
	})
	if err != nil {
		return err
	}
	d.api = handler
	if d.endpoint, err = mcp.New(mcp.Options{
		Catalog: d.catalog, Calls: d.calls, Keys: d.callers, Origin: pages, Metrics: o.Metrics, Traces: o.Traces, Baggage: o.Baggage, Log: o.Log, Version: o.Version, Draining: d.draining.Load,
		FrontDoor: d.id, Waits: waiting, Want: o.Conn.WantResources, ApproverURL: strings.TrimRight(o.Config.ApproverURL, "/"), Connected: o.Credentials.Ready,
	}); err != nil {
		return err
	}
	if d.updates, err = o.Conn.WatchUpdates(d.endpoint.Updated); err != nil {
		return err
	}
	d.sessions = openSessions(o, d.endpoint)
	if d.notifier != nil {
		d.notifier.start()
	}
	d.handler = withCORS(pages.Origins(), d.endpoints(handler))
	d.server = listen.NewServer(d.handler, &d.draining, o.Log)
	if o.NoListener {
		return nil
	}
	if d.listener, err = open(context.Background(), o); err != nil {
		return err
	}
	if config.Loopback(d.Addr()) { // remote callers use another address, which must be configured
		d.callers.Serve(d.URL())
	}
	d.wait.Go(func() { listen.Serve(d.server, d.listener, o.Config.Listen, o.Failed) })
	return nil
}

// evaluationsIn returns the evaluation runs in a folder, or nil if dir is "".
func evaluationsIn(dir string) *runs.Folder {
	if dir == "" {
		return nil
	}
	return runs.New(dir)
}

// checkAddress checks whether the front door can listen on its address.
func checkAddress(ctx context.Context, o Options) error {
	if o.NoListener {
		return nil
	}
	l, err := open(ctx, o)
	if err != nil {
		return err
	}
	if err := l.Close(); err != nil {
		return fmt.Errorf("checking the address %s: %w", o.Config.Listen, err)
	}
	return nil
}

func open(ctx context.Context, o Options) (net.Listener, error) {
	l, err := listen.Open(ctx, o.Config.Listen, listen.TLS{Cert: o.Config.CertFile, Key: o.Config.KeyFile, ClientCAs: o.Config.ClientCAFile}, o.Log)
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return nil, fmt.Errorf("listening on %s: %w; is another front door running? --listen names another address", o.Config.Listen, err)
	}
	return l, err
}

// endpoints routes each request to the MCP endpoint or the REST API, by its path.
func (d *FrontDoor) endpoints(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if mcp.Serves(r.URL.Path) {
			d.endpoint.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}

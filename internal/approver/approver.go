// Package approver assembles and runs the approver, in which people decide held calls.
//
// It accepts connections only when it can record decisions. While it runs, overdue approvals end as
// denied. It announces a stop before it stops. It refuses to listen beyond loopback without
// authentication. It never runs a call and never starts a process.
package approver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/approver/notify"
	"github.com/callyard/callyard/internal/approver/oidc"
	"github.com/callyard/callyard/internal/approver/web"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authserver"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/console"
	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/kit/warnings"
	"github.com/callyard/callyard/internal/listen"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/audit"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/tenants"
	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	reconcileEvery = time.Second
	reconcileFor   = 10 * time.Second
)

// Options configures an approver. The caller owns Desk and Ledger, which must outlive the approver.
type Options struct {
	Config settings.Approver
	// Listener is an open listener for the address of Config. If nil, Start opens one.
	Listener net.Listener
	Desk     *approval.Desk
	Ledger   *ledger.Ledger
	// Audit records the grants that people give to programs, and acts of operators. If nil, they
	// are not recorded. The caller must close it.
	Audit *audit.Log
	// Conn is the connection for the approver's heartbeat, and for the tables of Slack and
	// webhooks. The caller must close it. It may be nil if no feature needs it.
	Conn *bus.Conn
	// FrontDoor returns the address of a front door in the same process, which the console uses
	// if Config names no other. If nil, there is none.
	FrontDoor func() string
	// Credentials holds the credentials at MCP servers that people connect on the pages. If nil,
	// there are none. The caller must close it.
	Credentials *credential.Book
	// SealKeys encrypts the authorization server's data; nil if there is none. DataKeys encrypts
	// its grants again; nil means that they are encrypted once. The caller owns both.
	SealKeys *credential.Keys
	DataKeys *datakey.Ring
	// Tenants maps tenants to their notification channels. If nil, all channels serve all tenants.
	Tenants *tenants.Book
	// Traces creates the spans. If nil, there are none.
	Traces  *telemetry.Traces
	Log     *slog.Logger
	Version string
	// Alive reports whether the front door that runs a call is alive. If nil, all are assumed
	// to be alive; front doors detect dead ones as well.
	Alive func(runner string) bool
	// InForce returns the effective configuration of the process, which is announced to front
	// doors. If nil, nothing is announced.
	InForce func() []schema.InForce
	// Signer is the id of the key with which the desk signs warrants, or "". It is announced too.
	Signer string
	// Ready returns nil if the ledger can be written, else the reason why not. If nil, the ledger
	// is assumed to be writable.
	Ready func() error
	// Failed receives the error if the approver fails. It must have a buffer of one.
	Failed chan<- error
}

// Approver is a running approver.
type Approver struct {
	o             Options
	keys          *authn.Keys
	pages         *web.Handler
	people        *oidc.Provider     // nil if not configured
	console       *console.Console   // nil if not configured
	authorization *authserver.Server // nil if not configured
	channels      channels
	server        *http.Server
	listener      net.Listener
	draining      atomic.Bool
	ctx           context.Context // ends when the background work must stop
	cancel        context.CancelFunc
	wait          sync.WaitGroup
}

// Start starts the approver, which serves requests when Start returns. ctx bounds the start only.
func Start(ctx context.Context, o Options) (*Approver, error) {
	c := o.Config
	if faults := c.Validate(); len(faults) > 0 {
		return nil, fmt.Errorf("approver.%s", faults[0]) // not validated yet if the caller did not load a file
	}
	if faults := c.OIDC.Validate(); len(faults) > 0 {
		return nil, fmt.Errorf("approver.oidc.%s", faults[0])
	}
	for name, faults := range map[string][]config.Fault{"slack": c.Slack.Validate(), "notify": append(c.Notify.Validate(), notify.Check(c.Notify)...)} {
		if len(faults) > 0 {
			return nil, fmt.Errorf("approver.%s.%s", name, faults[0])
		}
	}
	keys, err := authn.NewKeys(c.Keys)
	if err != nil {
		return nil, err
	}
	keys.LogTo(o.Log)
	if o.Alive == nil {
		o.Alive = func(string) bool { return true }
	}
	public, _ := c.Public()
	a := &Approver{o: o, keys: keys}
	if o.Listener != nil {
		a.listener, err = listen.On(o.Listener, listen.TLS{Cert: c.CertFile, Key: c.KeyFile}, o.Log)
	} else {
		a.listener, err = listen.Open(ctx, c.Listen, listen.TLS{Cert: c.CertFile, Key: c.KeyFile}, o.Log)
	}
	if err != nil {
		if _, ok := errors.AsType[*net.OpError](err); ok {
			err = fmt.Errorf("listening on %s: %w; is another approver running? --approver-listen names another address", c.Listen, err)
		}
		return nil, err
	}
	if c.OIDC.Configured() {
		back, err := redirectURL(&c, public, a.listener.Addr().String())
		if err != nil {
			return nil, errors.Join(err, a.listener.Close())
		}
		a.people = oidc.New(c.OIDC, back, nil, o.Log)
	}
	if err = a.openAuthorization(ctx); err == nil {
		err = a.openPeople(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, a.closeChannels(ctx), a.listener.Close())
	}
	if a.console, err = openConsole(o); err != nil {
		return nil, errors.Join(err, a.closeChannels(ctx), a.listener.Close())
	}
	if a.pages, err = web.New(web.Options{
		Desk: o.Desk, Ledger: o.Ledger, Keys: keys, People: a.people, Slack: a.channels.book, Credentials: o.Credentials, Authorization: a.authorization, Tenants: o.Tenants,
		LocalGroups: c.LocalGroups, Observers: c.ObserverGroups, PublicURL: public, HTTPS: c.CertFile != "", Lifetime: c.SessionLifetime, Idle: c.SessionIdle,
		FreshFor: c.FreshSignIn, ArgumentBytes: int(c.ArgumentBytes), Console: a.console, ConsoleGroups: c.Console.Groups, Traces: o.Traces, Log: o.Log, Version: o.Version, Ready: a.Ready,
		Deliveries: a.deliveries, DeliveryAdmins: c.Notify.AdminGroups, Audit: o.Audit,
	}); err != nil {
		return nil, errors.Join(err, a.closeChannels(ctx), a.listener.Close())
	}
	if err := a.openChannels(ctx); err != nil {
		a.pages.Close()
		return nil, errors.Join(err, a.closeChannels(ctx), a.listener.Close())
	}
	if (keys.Configured() || a.people != nil) && !config.Loopback(c.Listen) && c.CertFile == "" && (public == nil || public.Scheme != "https") {
		o.Log.Warn("sessions of the approver may be sent unencrypted: put it behind TLS and set approver.public_url to its https URL")
	}
	a.server = listen.NewServer(a.routed(), &a.draining, o.Log)
	a.ctx, a.cancel = context.WithCancel(context.WithoutCancel(ctx))
	a.wait.Go(a.reconcile)
	if o.InForce != nil && o.Conn != nil {
		a.wait.Go(a.announce)
	}
	if a.people != nil {
		a.wait.Go(func() { _ = a.people.Reach(a.ctx) }) // logs a failure before the first person signs in
	}
	a.wait.Go(func() { listen.Serve(a.server, a.listener, c.Listen, o.Failed) })
	return a, nil
}

// reconcile expires overdue approvals, and escalates those that nobody has answered.
func (a *Approver) reconcile() {
	tick := time.NewTicker(reconcileEvery)
	defer tick.Stop()
	var reconciling warnings.Spacing
	for {
		ctx, cancel := context.WithTimeout(a.ctx, reconcileFor)
		_, err := a.o.Desk.Reconcile(ctx, a.o.Alive)
		cancel()
		if a.ctx.Err() == nil {
			reconciling.Report(a.o.Log, err, "processing approvals failed; it is tried again", "approvals are processed again")
		}
		select {
		case <-a.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// ReplaceKeys replaces the API keys. Sessions of a removed key end, and those of a changed key get
// its groups. On an error, which lists every invalid key, the old keys remain in use.
func (a *Approver) ReplaceKeys(keys []authn.Key) error { return a.keys.Replace(keys) }

// Addr returns the listen address.
func (a *Approver) Addr() string { return a.listener.Addr().String() }

// Base returns the base URL of the listen address, without a path.
func (a *Approver) Base() string { return listen.Scheme(a.o.Config.CertFile) + "://" + a.Addr() }

// URL returns the public address of an approval's page, or of the list if id is empty.
func (a *Approver) URL(id schema.ApprovalID) string { return PageURL(a.o.Config, a.Addr(), id) }

// PageURL is [Approver.URL] for processes that have only the configuration. address is the listen
// address.
func PageURL(c settings.Approver, address string, id schema.ApprovalID) string {
	base := cmp.Or(strings.TrimSuffix(c.PublicURL, "/"), listen.Scheme(c.CertFile)+"://"+address)
	if id == "" {
		return base + "/"
	}
	return base + "/a/" + url.PathEscape(string(id))
}

// Ready returns nil if decisions can be recorded, else the reason why not.
func (a *Approver) Ready() error {
	if a.draining.Load() {
		return errors.New("the approver is shutting down")
	}
	if a.o.Ready != nil {
		return a.o.Ready()
	}
	return nil
}

// Stop drains and stops the approver. Readiness fails first and live updates end. Then it refuses
// new requests and waits for those in flight, until ctx or the configured grace period ends. It
// waits for all goroutines that it started.
func (a *Approver) Stop(ctx context.Context) error {
	a.draining.Store(true)
	sleep.For(a.o.Config.DrainDelay, ctx.Done())
	a.pages.Close()
	if a.console != nil {
		a.console.Close()
	}
	grace, cancel := context.WithTimeout(ctx, a.o.Config.DrainGrace)
	defer cancel()
	err := a.server.Shutdown(grace)
	if err != nil {
		err = errors.Join(fmt.Errorf("requests were still running at the end of the grace period: %w", err), a.server.Close())
	}
	err = errors.Join(err, a.closeChannels(grace))
	a.cancel()
	a.wait.Wait()
	if a.people != nil {
		a.people.Close()
	}
	return err
}

// Package approver assembles and runs the approver: the place where people say
// whether a held call may run.
//
// It promises that it serves only when it can take answers, that overdue questions end as a
// denial while it runs, and that a stop is announced before it happens. It refuses to
// listen beyond loopback where nobody needs to sign in. It never runs a call and never
// starts a process.
package approver

import (
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

// Options says what an approver runs on. Desk and Ledger stay the caller's and
// must outlive it.
type Options struct {
	Config settings.Approver
	// Listener listens at the address of Config already; nil: Start opens it.
	Listener net.Listener
	Desk     *approval.Desk
	Ledger   *ledger.Ledger
	// Audit is where it is recorded what people grant to programs; nil: nowhere. It is the
	// caller's.
	Audit *audit.Log
	// Conn is the connection on which the approver announces itself, and that Slack and
	// webhooks keep their tables on; it stays the caller's. It may be nil where there is
	// nothing of that.
	Conn *bus.Conn
	// FrontDoor returns the address of a front door in the same process, which the console
	// shows where Config names no other; nil: there is none.
	FrontDoor func() string
	// Credentials are those of people at MCP servers, which they connect at the pages; nil:
	// there are none. They are the caller's.
	Credentials *credential.Book
	// SealKeys encrypt what the authorization server stores; nil where there is none. DataKeys
	// encrypt its grants again; nil: they do not. They are the caller's.
	SealKeys *credential.Keys
	DataKeys *datakey.Ring
	// Tenants say where people of each are told of approvals; nil: everywhere.
	Tenants *tenants.Book
	// Traces makes the spans; nil: there are none.
	Traces  *telemetry.Traces
	Log     *slog.Logger
	Version string
	// Alive says whether the front door that runs a call still lives; nil means
	// that nobody is taken for dead here, which front doors see to as well.
	Alive func(runner string) bool
	// InForce says what configuration the process goes by, which is announced to front
	// doors; nil: nothing is announced.
	InForce func() []schema.InForce
	// Ready returns nil while the ledger can be written, else what is missing; nil
	// means that it always can.
	Ready func() error
	// Failed gets the error that ends the approver by itself; it has room for one.
	Failed chan<- error
}

// Approver is a running approver.
type Approver struct {
	o             Options
	keys          *authn.Keys
	pages         *web.Handler
	people        *oidc.Provider     // nil where there is none
	console       *console.Console   // nil where there is none
	authorization *authserver.Server // nil where there is none
	channels      channels
	server        *http.Server
	listener      net.Listener
	draining      atomic.Bool
	ctx           context.Context // ends with the tending
	cancel        context.CancelFunc
	wait          sync.WaitGroup
}

// Start opens the approver. It serves when Start returns; ctx bounds the start only.
func Start(ctx context.Context, o Options) (*Approver, error) {
	c := o.Config
	if faults := c.Validate(); len(faults) > 0 {
		return nil, fmt.Errorf("approver.%s", faults[0]) // whoever did not load a file has not seen it yet
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
		a.wait.Go(func() { _ = a.people.Reach(a.ctx) }) // it logs what is wrong, before the first person meets it
	}
	a.wait.Go(func() { listen.Serve(a.server, a.listener, c.Listen, o.Failed) })
	return a, nil
}

// reconcile ends what is overdue, and asks more people where nobody answered.
func (a *Approver) reconcile() {
	tick := time.NewTicker(reconcileEvery)
	defer tick.Stop()
	down := false
	for {
		ctx, cancel := context.WithTimeout(a.ctx, reconcileFor)
		_, err := a.o.Desk.Reconcile(ctx, a.o.Alive)
		cancel()
		if err != nil && !down && a.ctx.Err() == nil {
			a.o.Log.Error("expired approvals cannot be ended at the moment", "error", err)
		}
		down = err != nil
		select {
		case <-a.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// ReplaceKeys puts the API keys in force: the sessions of a removed key have ended, and
// those of a changed one have its groups. On an error, which names every key that is
// wrong, the old ones stay.
func (a *Approver) ReplaceKeys(keys []authn.Key) error { return a.keys.Replace(keys) }

// Addr is the address that the approver listens on.
func (a *Approver) Addr() string { return a.listener.Addr().String() }

// Base is the address that it serves, without a path.
func (a *Approver) Base() string { return listen.Scheme(a.o.Config.CertFile) + "://" + a.Addr() }

// URL is the address of the page of an approval, as people reach it; with an
// empty id it is that of the list.
func (a *Approver) URL(id schema.ApprovalID) string { return PageURL(a.o.Config, a.Addr(), id) }

// PageURL is [Approver.URL] for processes that only know the configuration; address is
// the one that is listened on.
func PageURL(c settings.Approver, address string, id schema.ApprovalID) string {
	base := strings.TrimSuffix(c.PublicURL, "/")
	if base == "" {
		base = listen.Scheme(c.CertFile) + "://" + address
	}
	if id == "" {
		return base + "/"
	}
	return base + "/a/" + url.PathEscape(string(id))
}

// Ready returns nil while answers can be taken, else what is missing.
func (a *Approver) Ready() error {
	if a.draining.Load() {
		return errors.New("the approver is shutting down")
	}
	if a.o.Ready != nil {
		return a.o.Ready()
	}
	return nil
}

// Stop drains and ends the approver: readiness goes red, live updates end, then
// nothing new is taken, requests under way are finished until ctx or the grace
// of the configuration ends, and everything it started is waited for.
func (a *Approver) Stop(ctx context.Context) error {
	a.draining.Store(true)
	select {
	case <-time.After(a.o.Config.DrainDelay):
	case <-ctx.Done():
	}
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

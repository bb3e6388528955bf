package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"

	"github.com/callyard/callyard/internal/lifecycle"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/setup"
	"github.com/callyard/callyard/internal/setup/workerrole"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/worker"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Worker serves the tools of a program in a fleet. Set it up from one goroutine, and call
// [Worker.Run] once.
type Worker struct {
	url     string
	config  string
	flags   map[string]string
	edits   []func(*settings.File)
	log     *slog.Logger
	ready   func(id schema.WorkerID)
	servers []*Server
}

// WorkerOption configures a worker.
type WorkerOption func(*Worker)

// Name sets the name that operators see: 1 to 40 printable ASCII characters without spaces.
// Each start adds a random suffix. The default is "worker".
func Name(name string) WorkerOption {
	return edit(func(f *settings.File) { f.Worker.Name = name })
}

// Labels sets the worker's labels.
func Labels(labels map[string]string) WorkerOption {
	return edit(func(f *settings.File) {
		if f.Worker.Labels == nil {
			f.Worker.Labels = map[string]string{}
		}
		maps.Copy(f.Worker.Labels, labels)
	})
}

// ConfigFile sets the path of a configuration file of Callyard
// (docs/reference/configuration.md). The sections nats, worker, warrants, policy, traces and
// log apply. Environment variables override its keys and also apply without a file. The
// options of a Worker override both.
func ConfigFile(path string) WorkerOption { return func(w *Worker) { w.config = path } }

// Policy sets the path of the policy file. The worker assesses calls by its own copy, in
// addition to the front door. Without one, risk levels and annotations decide.
func Policy(path string) WorkerOption { return flag("policy", path) }

// Credentials sets the path of a NATS credentials file (.creds).
func Credentials(file string) WorkerOption {
	return edit(func(f *settings.File) { f.NATS.CredentialsFile = file })
}

// UserPassword sets the NATS user and password.
func UserPassword(user, password string) WorkerOption {
	return edit(func(f *settings.File) { f.NATS.User, f.NATS.Password = user, telemetry.Secret(password) })
}

// WarrantKeys sets the paths of files with public keys. A call that required approval runs on
// this worker only with a warrant that one of these keys verifies. people are the keys of
// approvers, callers those of front doors.
func WarrantKeys(people, callers []string) WorkerOption {
	return edit(func(f *settings.File) { f.Warrants.PeopleKeys, f.Warrants.CallerKeys = people, callers })
}

// Logger sets the logger. The default writes to stderr as configured in the section log.
func Logger(log *slog.Logger) WorkerOption { return func(w *Worker) { w.log = log } }

// Started sets a function that is called with the worker's id once it has joined the fleet.
func Started(f func(id schema.WorkerID)) WorkerOption { return func(w *Worker) { w.ready = f } }

func edit(f func(*settings.File)) WorkerOption {
	return func(w *Worker) { w.edits = append(w.edits, f) }
}

func flag(name, value string) WorkerOption { return func(w *Worker) { w.flags[name] = value } }

// New returns a worker for the NATS server or cluster at url, such as
// "nats://127.0.0.1:4222". Separate several addresses with commas. If url is "", the
// configuration provides it.
func New(url string, options ...WorkerOption) *Worker {
	w := &Worker{url: url, flags: map[string]string{}}
	for _, o := range options {
		o(w)
	}
	return w
}

// Server adds a server without tools; see [NewServer].
func (w *Worker) Server(name string, options ...ServerOption) *Server {
	s := NewServer(name, options...)
	w.Add(s)
	return s
}

// Add adds servers.
func (w *Worker) Add(servers ...*Server) { w.servers = append(w.servers, servers...) }

// Run joins the fleet and serves calls until ctx ends or the process receives SIGTERM or
// SIGINT. It then accepts no new calls, finishes calls in flight within the worker's
// drain_grace (30 s by default) and returns nil. The error reports all registration errors,
// all faults of the configuration, or the failure that ended the worker.
func (w *Worker) Run(ctx context.Context) error {
	served, err := finish(w.servers)
	if err != nil {
		return err
	}
	role := workerrole.Setup{Own: served}
	p, err := w.prepare(role.Role())
	if err != nil {
		return err
	}
	p.LogFindings()
	for _, s := range w.servers {
		s.logTo(p.Log)
	}
	connect := func(ctx context.Context, name string, keep bool) (*bus.Conn, error) {
		return p.Config.Connect(ctx, name, keep, p.Log)
	}
	m := telemetry.NewMetrics()
	return lifecycle.Run(ctx, p.Log, p.Config.TracesPart("callyard-worker", m, p.Log),
		role.Part(p.Config, connect, p.Policy, m, p.Log, func(running *worker.Worker) {
			p.Log.Info("worker is up", "worker", running.ID(), "servers", len(served))
			if w.ready != nil {
				w.ready(running.ID())
			}
		}),
		p.ReloadPart(m))
}

// prepare reads the configuration.
func (w *Worker) prepare(role setup.RoleSetup) (*setup.Prepared, error) {
	flags := maps.Clone(w.flags)
	if w.url != "" {
		flags["nats"] = w.url
	}
	if w.config != "" {
		flags["config"] = w.config
	}
	p, err := setup.PrepareWith(flags, os.Stderr, role)
	if err != nil {
		return nil, err
	}
	for _, e := range w.edits {
		e(&p.Config.File)
	}
	if faults := p.Config.Worker.Validate(); len(faults) > 0 {
		return nil, errors.New("worker." + faults[0].String())
	}
	if w.log != nil {
		p.Log = w.log
	}
	return p, nil
}

// finish returns the servers in the form that a worker serves. The error lists every fault.
func finish(servers []*Server) ([]worker.Served, error) {
	if len(servers) == 0 {
		return nil, errors.New("the worker has no server; add one with Server, Serve or Add")
	}
	seen := map[string]bool{}
	var all []worker.Served
	var faults []error
	for _, s := range servers {
		served, err := s.finish()
		if seen[s.name] {
			err = errors.Join(err, fmt.Errorf("server %q is added twice", s.name))
		}
		seen[s.name] = true
		faults = append(faults, err)
		all = append(all, served)
	}
	return all, errors.Join(faults...)
}

// quiet is the default logger of a fabric.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

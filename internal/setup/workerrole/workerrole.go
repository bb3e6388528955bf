// Package workerrole sets up a worker for programs that run one.
package workerrole

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/lifecycle"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/setup"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/worker"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Setup is the set-up of one worker. The zero value is ready to use.
type Setup struct {
	// Own are servers in the program itself, which the worker holds instead of those of a servers
	// file. They are not processes that the worker starts. If nil, there are none.
	Own []worker.Served
	// Leave asks the program to exit; see [worker.Options].
	Leave func()

	served  []worker.Served               // currently effective
	running atomic.Pointer[worker.Worker] // nil until it runs
}

// Role returns the worker's part of [setup.Prepare].
func (s *Setup) Role() setup.RoleSetup {
	return setup.RoleSetup{
		Role: setup.Worker, Serve: s.serve,
		Pending: func() []string {
			if w := s.running.Load(); w != nil {
				return w.Pending()
			}
			return nil
		},
	}
}

// Served returns the effective servers. Do not call it while files are being reloaded.
func (s *Setup) Served() []worker.Served { return s.served }

func (s *Setup) serve(c *settings.Worker, entries []config.ServerEntry) (setup.Held, error) {
	if s.Own != nil {
		for i := range s.Own {
			worker.FillLimits(c, &s.Own[i].Session)
		}
		return s.hold(s.Own), nil
	}
	served, err := worker.Serve(c, entries)
	return s.hold(served), err
}

// hold returns the servers that the worker should hold.
func (s *Setup) hold(served []worker.Served) setup.Held {
	var held setup.Held
	for i := range served {
		held.Servers = append(held.Servers, served[i].Entry)
		held.Troubles = append(held.Troubles, startFaults(&served[i])...)
	}
	held.Apply = func() {
		s.served = served
		if w := s.running.Load(); w != nil {
			w.Apply(slices.Clone(served))
		}
	}
	return held
}

// startFaults returns the reasons why a server cannot start on this machine.
func startFaults(s *worker.Served) []config.Fault {
	var found []config.Fault
	say := func(err error) {
		found = append(found, config.Fault{Where: s.Entry.Where, Message: err.Error()})
	}
	if s.Sandbox != nil && s.Sandbox.Fault != nil {
		say(s.Sandbox.Fault)
	}
	if s.Session.Spec.Type == config.TypeStdio && (s.Sandbox == nil || !s.Sandbox.Only) {
		if err := s.Session.Spec.Check(); err != nil {
			say(err)
		}
	}
	return found
}

// closeReserve is the part of a worker's grace period that is reserved for stopping its servers.
const closeReserve = 5 * time.Second

// Part returns a worker that holds [Setup.Served] as a lifecycle part. started is called with the
// running worker.
func (s *Setup) Part(c *setup.Config, connect setup.Connector, policy *risk.Holder, m *telemetry.Metrics, log *slog.Logger, started func(*worker.Worker)) lifecycle.Part {
	var conn *bus.Conn
	var w *worker.Worker
	var unwatch func()
	var programs attachListener
	return lifecycle.Part{
		Name: "worker", Grace: c.Worker.DrainGrace + closeReserve,
		Start: func(ctx context.Context) (err error) {
			trust, err := c.Trust()
			if err != nil {
				return err
			}
			if conn, err = connect(ctx, "worker "+c.Worker.Name, true); err != nil {
				return err
			}
			conn.OnUnexpected(m.Unexpected)
			o := worker.Options{Name: c.Worker.Name, Version: setup.Version(), Labels: c.Worker.Labels, Conn: conn, Servers: s.served, Policy: policy, InForce: c.InForce, NoProcesses: s.Own != nil, Leave: s.Leave, Trust: trust, Sandboxes: c.Worker.Sandboxes, Scope: c.SandboxScope(), Metrics: m, Traces: c.Spans(), Log: log}
			if c.Worker.APIServers {
				o.Parse = func(id schema.ServerID, entry json.RawMessage) (worker.Served, error) {
					return worker.ParseAdded(&c.Worker, id, entry)
				}
			}
			if w, err = worker.Start(o); err != nil {
				conn.Close()
				return err
			}
			if err = programs.start(ctx, &c.Worker.Attach, w, log); err != nil {
				return startFailed(ctx, err, w, conn)
			}
			unwatch = m.NATS("worker", func() bool { return conn.Ready() == nil })
			s.running.Store(w)
			started(w)
			return nil
		},
		Stop: func(ctx context.Context) error {
			grace, cancel := context.WithTimeout(ctx, c.Worker.DrainGrace)
			defer cancel()
			err := w.Stop(grace)
			programs.stop()
			unwatch()
			conn.Close()
			return err
		},
	}
}

// startFailed stops everything that a part started before err.
func startFailed(ctx context.Context, err error, w *worker.Worker, conn *bus.Conn) error {
	err = errors.Join(err, w.Stop(ctx))
	conn.Close()
	return err
}

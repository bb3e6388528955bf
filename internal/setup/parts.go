package setup

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/approver"
	"github.com/callyard/callyard/internal/confirm"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/lifecycle"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/warrant"
	"github.com/callyard/callyard/internal/worker"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/risk"
)

// Connector opens a connection to NATS under a name.
type Connector func(ctx context.Context, name string, keep bool) (*bus.Conn, error)

// FrontDoorPart returns the front door as a part. started is called with its address.
func (c *Config) FrontDoorPart(connect Connector, policy *risk.Holder, m *telemetry.Metrics, log *slog.Logger, started func(*frontdoor.FrontDoor)) lifecycle.Part {
	var conn, stored *bus.Conn
	var door *frontdoor.FrontDoor
	var unwatch func()
	failed := make(chan error, 1)
	return lifecycle.Part{
		Name: "front door", Failed: failed, Grace: c.FrontDoor.DrainDelay + c.FrontDoor.DrainGrace,
		Start: func(ctx context.Context) (err error) {
			signer, err := c.Signer(warrant.Caller, warrant.Standing)
			if err != nil {
				return err
			}
			if conn, err = connect(ctx, "frontdoor", false); err != nil {
				return err
			}
			if stored, err = connect(ctx, "frontdoor (stored)", false); err != nil {
				conn.Close()
				return err
			}
			conn.OnUnexpected(m.Unexpected)
			stored.OnUnexpected(m.Unexpected)
			opening, cancel := context.WithTimeout(ctx, openFor)
			defer cancel()
			door, err = frontdoor.Start(opening, frontdoor.Options{Config: c.FrontDoor, Lost: c.lostNow(), Region: c.Region, InForce: c.inForce, Conn: conn, Stored: stored, Metrics: m, Traces: c.traces, Baggage: c.Traces.Baggage, Log: log, Version: Version(), Failed: failed, Policy: policy, Redis: confirm.OptionsOf(c.Redis), Webhooks: c.Webhooks, Limits: c.Limits, Cache: c.Cache, Signer: signer})
			if err != nil {
				stored.Close()
				conn.Close()
				return err
			}
			unconnected := m.NATS("frontdoor", func() bool { return conn.Ready() == nil && stored.Ready() == nil })
			unstored := m.JournalWrites("frontdoor", stored.NotStoring)
			unwatch = func() { unconnected(); unstored() }
			c.running.callerKeys = door.ReplaceKeys
			started(door)
			return nil
		},
		Stop: func(ctx context.Context) error {
			err := door.Stop(ctx)
			unwatch()
			stored.Close()
			conn.Close()
			return err
		},
	}
}

// ApproverPart returns the approver as a part. started is called with it. policy
// assesses edited calls at once; where it is nil the front door that claims them does.
func (c *Config) ApproverPart(connect Connector, policy *risk.Holder, m *telemetry.Metrics, log *slog.Logger, started func(*approver.Approver)) lifecycle.Part {
	var conn *bus.Conn
	var room *approval.Room
	var a *approver.Approver
	var unwatch func()
	failed := make(chan error, 1)
	return lifecycle.Part{
		Name: "approver", Failed: failed, Grace: c.Approver.DrainDelay + c.Approver.DrainGrace,
		Start: func(ctx context.Context) (err error) {
			signer, err := c.Signer(warrant.People)
			if err != nil {
				return err
			}
			if signer == nil {
				log.Warn("no warrants.key_file is set: what people approve here is not signed, and workers refuse to run it (callyard keys warrant makes a key)")
			}
			if conn, err = connect(ctx, "approver", false); err != nil {
				return err
			}
			opening, cancel := context.WithTimeout(ctx, openFor)
			defer cancel()
			if room, err = approval.OpenRoom(opening, approval.RoomOptions{Conn: conn, LostBefore: c.lostNow().Approvals, Redis: confirm.OptionsOf(c.Redis), Name: "approver", Sign: approval.Signing(signer), Policy: policy, Traces: c.traces, Log: log}); err != nil {
				conn.Close()
				return err
			}
			a, err = approver.Start(opening, approver.Options{Config: c.Approver, InForce: c.inForce, Desk: room.Desk, Ledger: room.Ledger, Conn: conn, Traces: c.traces, Log: log, Version: Version(), Failed: failed,
				Ready: func() error { return errors.Join(conn.Ready(), conn.Storing()) }})
			if err != nil {
				room.Close()
				conn.Close()
				return err
			}
			unconnected := m.NATS("approver", func() bool { return conn.Ready() == nil })
			unstored := m.JournalWrites("approver", conn.NotStoring)
			unwatch = func() { unconnected(); unstored() }
			c.running.peoplesKeys = a.ReplaceKeys
			started(a)
			return nil
		},
		Stop: func(ctx context.Context) error {
			err := a.Stop(ctx)
			unwatch()
			room.Close()
			conn.Close()
			return err
		},
	}
}

// closeReserve is kept from a worker's grace for the end of its servers.
const closeReserve = 5 * time.Second

// WorkerPart returns a worker that holds the servers as a part.
func (c *Config) WorkerPart(connect Connector, policy *risk.Holder, served []worker.Served, m *telemetry.Metrics, log *slog.Logger, started func(*worker.Worker)) lifecycle.Part {
	var conn *bus.Conn
	var w *worker.Worker
	var unwatch func()
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
			o := worker.Options{Name: c.Worker.Name, Version: Version(), Labels: c.Worker.Labels, Conn: conn, Servers: served, Policy: policy, InForce: c.inForce, Trust: trust, Boxes: c.Worker.Boxes, Scope: c.boxScope(), Metrics: m, Traces: c.traces, Log: log}
			if c.Worker.APIServers {
				o.Parse = func(id string, entry json.RawMessage) (worker.Served, error) {
					return worker.ParseAdded(&c.Worker, id, entry)
				}
			}
			if w, err = worker.Start(o); err != nil {
				conn.Close()
				return err
			}
			unwatch = m.NATS("worker", func() bool { return conn.Ready() == nil })
			pending := w.Pending
			c.running.servers = w.Apply
			c.running.pending.Store(&pending)
			started(w)
			return nil
		},
		Stop: func(ctx context.Context) error {
			grace, cancel := context.WithTimeout(ctx, c.Worker.DrainGrace)
			defer cancel()
			err := w.Stop(grace)
			unwatch()
			conn.Close()
			return err
		},
	}
}

// OnLost has front door and approver ask at their start what was lost with a damaged
// data folder.
func (c *Config) OnLost(f func() frontdoor.Lost) { c.lost = f }

func (c *Config) lostNow() frontdoor.Lost {
	if c.lost == nil {
		return frontdoor.Lost{}
	}
	return c.lost()
}

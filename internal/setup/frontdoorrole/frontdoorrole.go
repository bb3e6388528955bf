// Package frontdoorrole sets up a front door for programs that run one.
package frontdoorrole

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/callyard/callyard/internal/confirm"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/lifecycle"
	"github.com/callyard/callyard/internal/setup"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/tenants"
	"github.com/callyard/callyard/internal/warrant"
	"github.com/callyard/callyard/pkg/risk"
)

// Setup is the set-up of one front door. The zero value is ready to use.
type Setup struct {
	// Lost returns the losses of a damaged data folder, and is called at the start. If nil, there
	// were none.
	Lost func() frontdoor.Lost

	// NoListener is [frontdoor.Options.NoListener].
	NoListener bool

	running atomic.Pointer[frontdoor.FrontDoor] // nil until it runs
}

// Role returns the front door's part of [setup.Prepare].
func (s *Setup) Role() setup.RoleSetup {
	return setup.RoleSetup{
		Role:        setup.FrontDoor,
		Check:       frontdoor.Check,
		ReplaceKeys: setup.ReplaceKeys(&s.running),
	}
}

func (s *Setup) lost() frontdoor.Lost {
	if s.Lost == nil {
		return frontdoor.Lost{}
	}
	return s.Lost()
}

// Part returns the front door as a lifecycle part. started is called with the running front door.
func (s *Setup) Part(c *setup.Config, connect setup.Connector, policy *risk.Holder, m *telemetry.Metrics, log *slog.Logger, started func(*frontdoor.FrontDoor)) lifecycle.Part {
	var opened lifecycle.Closers
	var door *frontdoor.FrontDoor
	failed := make(chan error, 1)
	return lifecycle.Part{
		Name: "front door", Failed: failed, Grace: c.FrontDoor.DrainDelay + c.FrontDoor.DrainGrace,
		Start: func(ctx context.Context) (err error) {
			defer func() {
				if err != nil {
					opened.Close()
				}
			}()
			confirm.LogRedis(log)
			signer, err := c.Signer(warrant.Caller, warrant.Standing)
			if err != nil {
				return err
			}
			conn, err := connect(ctx, "frontdoor", false)
			if err != nil {
				return err
			}
			opened.Add(conn.Close)
			stored, err := connect(ctx, "frontdoor (stored)", false)
			if err != nil {
				return err
			}
			opened.Add(stored.Close)
			conn.OnUnexpected(m.Unexpected)
			stored.OnUnexpected(m.Unexpected)
			opening, cancel := setup.Opening(ctx)
			defer cancel()
			ring, err := c.DataKeys(opening, stored, true, log)
			if err != nil {
				return err
			}
			opened.Add(ring.Close)
			people, err := c.Credentials(opening, stored, ring, log)
			if err != nil {
				return err
			}
			opened.Add(people.Close)
			door, err = frontdoor.Start(opening, frontdoor.Options{Config: c.FrontDoor, Lost: s.lost(), NoListener: s.NoListener, Region: c.Region, InForce: c.InForce, Conn: conn, Stored: stored, Metrics: m, Traces: c.Spans(), Baggage: c.Traces.Baggage, Log: log, Version: setup.Version(), Failed: failed, Policy: policy, Redis: confirm.OptionsOf(c.Redis), Webhooks: c.Webhooks, Limits: c.Limits, Cache: c.Cache, Tenants: tenants.New(c.Tenants), Told: tenants.DestinationsOf(&c.Approver), Signer: signer, Credentials: people, DataKeys: ring})
			if err != nil {
				return err
			}
			opened.Add(setup.WatchConnection(m, "frontdoor", conn, stored))
			if confirm.OptionsOf(c.Redis) != nil {
				opened.Add(telemetry.Redis(m, door.TokensUp))
			}
			s.running.Store(door)
			started(door)
			return nil
		},
		Stop: func(ctx context.Context) error {
			defer opened.Close()
			return door.Stop(ctx)
		},
	}
}

// Package approverrole sets up an approver for programs that run one.
package approverrole

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/approver"
	"github.com/callyard/callyard/internal/confirm"
	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/lifecycle"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/setup"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/tenants"
	"github.com/callyard/callyard/internal/warrant"
	"github.com/callyard/callyard/pkg/risk"
)

// Setup is the set-up of one approver. The zero value is ready to use.
type Setup struct {
	// LostBefore returns the time before which approvals may have been lost with a damaged data
	// folder. It is called at the start. If it is nil or returns the zero time, none were lost.
	LostBefore func() time.Time
	// Listener already listens on the configured address. If nil, the approver opens it.
	Listener net.Listener
	// FrontDoor returns the address of a front door in the same process, for the console. If nil,
	// there is none.
	FrontDoor func() string

	running atomic.Pointer[approver.Approver] // nil until it runs
}

// Role returns the approver's part of [setup.Prepare].
func (s *Setup) Role() setup.RoleSetup {
	return setup.RoleSetup{
		Role:        setup.Approver,
		Check:       approver.Check,
		ReplaceKeys: setup.ReplaceKeys(&s.running),
	}
}

// authorization returns the section of the approver with the resources of its authorization server,
// and the keys that encrypt the data stored by that server, or nil if there is none.
func authorization(c *setup.Config) (settings.Approver, *credential.Keys, error) {
	config := c.Approver
	if !config.AuthorizationServer.Enabled {
		return config, nil, nil
	}
	if public := strings.TrimRight(c.File.FrontDoor.PublicURL, "/"); len(config.AuthorizationServer.Resources) == 0 && public != "" {
		config.AuthorizationServer.Resources = []string{public}
	}
	keys, err := credential.LoadKeys(c.File.Credentials.KeyFile)
	if err != nil {
		return config, nil, fmt.Errorf("credentials.key_file: %w", err)
	}
	return config, keys, nil
}

func (s *Setup) lostBefore() time.Time {
	if s.LostBefore == nil {
		return time.Time{}
	}
	return s.LostBefore()
}

// Part returns the approver as a lifecycle part. started is called with the running approver. policy
// assesses edited calls at once. If it is nil, the front door that claims the calls assesses them.
func (s *Setup) Part(c *setup.Config, connect setup.Connector, policy *risk.Holder, m *telemetry.Metrics, log *slog.Logger, started func(*approver.Approver)) lifecycle.Part {
	var opened lifecycle.Closers
	var a *approver.Approver
	failed := make(chan error, 1)
	return lifecycle.Part{
		Name: "approver", Failed: failed, Grace: c.Approver.DrainDelay + c.Approver.DrainGrace,
		Start: func(ctx context.Context) (err error) {
			defer func() {
				if err != nil {
					opened.Close()
				}
			}()
			confirm.LogRedis(log)
			signer, err := c.Signer(warrant.People)
			if err != nil {
				return err
			}
			config, sealing, err := authorization(c)
			if err != nil {
				return err
			}
			if signer == nil {
				log.Warn("warrants.key_file is not set: calls that people approve here are not signed, and workers refuse to run them (callyard keys warrant creates a key)")
			}
			conn, err := connect(ctx, "approver", false)
			if err != nil {
				return err
			}
			opened.Add(conn.Close)
			opening, cancel := setup.Opening(ctx)
			defer cancel()
			ring, err := c.DataKeys(opening, conn, false, log)
			if err != nil {
				return err
			}
			opened.Add(ring.Close)
			budget, err := approval.OpenInstance(opening, approval.InstanceOptions{DataKeys: ring, Conn: conn, LostBefore: s.lostBefore(), Redis: confirm.OptionsOf(c.Redis), Name: "approver", Sign: approval.Signing(signer), Policy: policy, Traces: c.Spans(), Log: log})
			if err != nil {
				return err
			}
			opened.Add(budget.Close)
			people, err := c.Credentials(opening, conn, ring, log)
			if err != nil {
				return err
			}
			opened.Add(people.Close)
			key := ""
			if signer != nil {
				key = signer.KeyID()
			}
			a, err = approver.Start(opening, approver.Options{Config: config, Signer: key, SealKeys: sealing, DataKeys: ring, Listener: s.Listener, FrontDoor: s.FrontDoor, InForce: c.InForce, Tenants: tenants.New(c.Tenants), Credentials: people, Desk: budget.Desk, Ledger: budget.Ledger, Audit: budget.Audit, Conn: conn, Traces: c.Spans(), Log: log, Version: setup.Version(), Failed: failed,
				Ready: func() error { return errors.Join(conn.Ready(), conn.Storing()) }})
			if err != nil {
				return err
			}
			opened.Add(setup.WatchConnection(m, "approver", conn, conn))
			s.running.Store(a)
			started(a)
			return nil
		},
		Stop: func(ctx context.Context) error {
			defer opened.Close()
			return a.Stop(ctx)
		},
	}
}

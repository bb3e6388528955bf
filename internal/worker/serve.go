package worker

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/upstream"
	"github.com/callyard/callyard/pkg/schema"
)

// Serve returns the servers that a worker with the section c holds. The error lists every entry with
// settings that cannot be honoured. Such a server never runs with less isolation than its entry asks
// for.
func Serve(c *settings.Worker, entries []config.ServerEntry) ([]Served, error) {
	var served []Served
	var faults []error
	for i := range entries {
		e := &entries[i]
		if !carries(c.Labels, e.Labels) {
			continue
		}
		s, err := serve(c, e)
		if err != nil {
			if e.Where != "" {
				err = fmt.Errorf("%s: %w", e.Where, err)
			}
			faults = append(faults, err)
			continue
		}
		served = append(served, s)
	}
	faults = append(faults, checkAttachKeys(served))
	return served, errors.Join(faults...)
}

func carries(has, wants map[string]string) bool {
	for k, v := range wants {
		if has[k] != v {
			return false
		}
	}
	return true
}

func serve(c *settings.Worker, e *config.ServerEntry) (Served, error) {
	b, err := sandboxOf(e)
	if err != nil {
		return Served{}, err
	}
	s := Served{
		Entry: *e, Sandbox: b, Risk: e.Risk, TrustAnnotations: e.TrustAnnotations, SafeTools: e.SafeTools, Asks: e.Asks,
		Session: session.Config{
			Spec: launch.Spec{
				ID: schema.ServerID(e.ID), Type: e.Type, Command: e.Command, Args: e.Args, Env: e.Env, Dir: e.Dir, URL: e.URL, Headers: e.Headers,
				Auth: upstream.New(schema.ServerID(e.ID), e.URL, e.Auth),
			},
			Sessions: e.Sessions, InFlight: e.InFlight, CallTimeout: e.Timeout, StartTimeout: e.StartTimeout,
			IdleStop: e.IdleStop, OnDemand: e.OnDemand, Pinned: e.Pin == schema.PinQuarantine,
		},
	}
	FillLimits(c, &s.Session)
	adapted(c, e, &s)
	if err := attached(c, e, &s); err != nil {
		return s, err
	}
	return s, builtin(e, &s)
}

// FillLimits sets the limits of a server that are unset to those of the section c.
func FillLimits(c *settings.Worker, s *session.Config) {
	s.Sessions, s.InFlight = cmp.Or(s.Sessions, c.Sessions), cmp.Or(s.InFlight, c.InFlight)
	s.CallTimeout, s.StartTimeout = cmp.Or(s.CallTimeout, c.CallTimeout), cmp.Or(s.StartTimeout, c.StartTimeout)
	s.MaxResult = cmp.Or(s.MaxResult, int(c.ResultBytes))
}

// ParseAdded parses an entry from the API for a worker with the section c; see [Options.Parse].
func ParseAdded(c *settings.Worker, id schema.ServerID, entry json.RawMessage) (Served, error) {
	e, err := config.ParseServer(string(id), entry)
	if err != nil {
		return Served{}, schema.Errorf(schema.KindInvalidRequest, "The server cannot be read: %w", err)
	}
	if e.Sandbox == config.SandboxBubblewrap {
		return Served{}, schema.Errorf(schema.KindInvalidRequest, "A sandbox of bubblewrap is weaker than a container, so only the operator can choose it, in the servers file; add docker with an image.")
	}
	s, err := serve(c, &e)
	if err == nil && s.Sandbox != nil && s.Sandbox.Fault != nil {
		return Served{}, s.Sandbox.Fault // an error now reaches the API caller, who can correct the entry
	}
	return s, err
}

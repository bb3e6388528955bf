package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/pkg/schema"
)

// Config is the section worker of the configuration.
type Config struct {
	// Name is what operators call this worker.
	Name string `yaml:"name"`
	// Listen is an address for /livez, /readyz and /metrics; empty: none. The
	// front door of `callyard up` has them already.
	Listen string `yaml:"listen"`
	// Labels are what this worker carries. A server whose entry asks for labels
	// is held only by workers that carry all of them.
	Labels map[string]string `yaml:"labels"`
	// Servers names the servers file.
	Servers string `yaml:"servers"`
	// APIServers lets the front door add servers here on behalf of callers.
	// Whoever may do that can run any command as this worker's user.
	APIServers bool `yaml:"api_servers"`
	// Sessions and InFlight are for servers whose entry does not say.
	Sessions int `yaml:"sessions"`
	InFlight int `yaml:"in_flight"`
	// CallTimeout, StartTimeout and ResultBytes likewise.
	CallTimeout  time.Duration `yaml:"call_timeout"`
	StartTimeout time.Duration `yaml:"start_timeout"`
	ResultBytes  config.Size   `yaml:"result_bytes"`
	// Boxes is the container engine for calls of high risk.
	Boxes Boxes `yaml:"boxes"`
	// DrainGrace is how long running calls may take when the worker stops.
	DrainGrace time.Duration `yaml:"drain_grace"`
}

// Defaults returns the configuration of a worker that was told nothing.
func Defaults() Config {
	return Config{
		Name: "worker", Sessions: 1, InFlight: 128, CallTimeout: time.Minute, StartTimeout: session.StartTimeout,
		ResultBytes: 64 << 20, DrainGrace: 30 * time.Second,
	}
}

// Validate returns the settings that cannot be honoured; see package config.
func (c Config) Validate() []config.Fault {
	var faults []config.Fault
	between := func(key string, v, least, most int64) {
		if v < least || v > most {
			faults = append(faults, config.Faultf(key, "must be between %d and %d.", least, most))
		}
	}
	if c.Name == "" || strings.ContainsFunc(c.Name, func(r rune) bool { return r < '!' || r > '~' }) || len(c.Name) > 40 {
		faults = append(faults, config.Faultf("name", "must be 1 to 40 printable ASCII characters without spaces."))
	}
	if c.Listen != "" {
		if wrong := config.AddressFault(c.Listen); wrong != "" {
			faults = append(faults, config.Faultf("listen", "%s", wrong))
		}
	}
	between("sessions", int64(c.Sessions), 1, 1000)
	between("in_flight", int64(c.InFlight), 1, 10_000)
	between("result_bytes", int64(c.ResultBytes), 1<<10, 1<<30)
	between("call_timeout", int64(c.CallTimeout/time.Millisecond), 1, int64(24*time.Hour/time.Millisecond))
	between("boxes.containers", int64(c.Boxes.Containers), 0, 10_000)
	between("boxes.warm", int64(c.Boxes.Warm), 0, 10_000)
	between("boxes.starts", int64(c.Boxes.Starts), 0, 1000)
	between("start_timeout", int64(c.StartTimeout/time.Millisecond), 1, int64(time.Hour/time.Millisecond))
	return faults
}

// Serve picks the entries that this worker is to hold. The error lists every
// entry that cannot be honoured; such a server never runs with less isolation
// than was asked for.
func (c *Config) Serve(entries []config.ServerEntry) ([]Served, error) {
	var served []Served
	var faults []error
	for i := range entries {
		e := &entries[i]
		if !carries(c.Labels, e.Labels) {
			continue
		}
		s, err := c.serve(e)
		if err != nil {
			if e.Where != "" {
				err = fmt.Errorf("%s: %w", e.Where, err)
			}
			faults = append(faults, err)
			continue
		}
		served = append(served, s)
	}
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

func (c *Config) serve(e *config.ServerEntry) (Served, error) {
	b, err := boxOf(e)
	if err != nil {
		return Served{}, err
	}
	s := Served{
		Entry: *e, Box: b, Risk: e.Risk, TrustAnnotations: e.TrustAnnotations, SafeTools: e.SafeTools, Asks: e.Asks,
		Session: session.Config{
			Spec: launch.Spec{
				ID: e.ID, Type: e.Type, Command: e.Command, Args: e.Args, Env: e.Env, Dir: e.Dir, URL: e.URL, Headers: e.Headers,
			},
			Sessions: or(e.Sessions, c.Sessions), InFlight: or(e.InFlight, c.InFlight),
			CallTimeout: or(e.Timeout, c.CallTimeout), StartTimeout: or(e.StartTimeout, c.StartTimeout),
			IdleStop: e.IdleStop, OnDemand: e.OnDemand, MaxResult: int(c.ResultBytes),
		},
	}
	c.adapted(e, &s)
	return s, nil
}

func or[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

// ParseAdded reads an entry that came over the API; see [Options.Parse].
func (c *Config) ParseAdded(id string, entry json.RawMessage) (Served, error) {
	e, err := config.ParseServer(id, entry)
	if err != nil {
		return Served{}, schema.Errorf(schema.KindInvalidRequest, "The server cannot be read: %w", err)
	}
	if e.Sandbox == config.SandboxBubblewrap {
		return Served{}, schema.Errorf(schema.KindInvalidRequest, "A sandbox of bubblewrap is weaker than a container, so only the operator chooses it, in the servers file; give docker with an image.")
	}
	s, err := c.serve(&e)
	if err == nil && s.Box != nil && s.Box.Fault != nil {
		return Served{}, s.Box.Fault // it is being asked for now, by somebody who can mend it
	}
	return s, err
}

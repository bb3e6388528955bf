package fabric

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// Container is one part of a fabric. Its methods inject faults. They return when the
// engine reports completion.
type Container struct {
	// Name is the name of the service, such as "worker-2". The other parts reach it by this name.
	Name string

	engine *engine
	inner  *testcontainers.DockerContainer
	port   string // the first of its ports; "" if it has none
	// endpoints maps the networks of the file to the endpoints of the container.
	endpoints map[string]endpoint

	mu  sync.Mutex
	url string
}

// endpoint is the attachment to a network: the network's name at the engine, and the address of
// a part with a fixed address.
type endpoint struct {
	network string
	address netip.Addr
}

// ID returns the ID of the container at the engine.
func (c *Container) ID() string { return c.inner.GetContainerID() }

// URL returns the URL of the part, such as "http://127.0.0.1:32768", or "" for a part
// without ports. It changes with each start, and is the URL of the last start or
// Locate.
func (c *Container) URL() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.url
}

// Locate asks the engine for the URL of a part that the engine may have restarted.
func (c *Container) Locate(ctx context.Context) (string, error) {
	if c.port == "" {
		return "", nil
	}
	port, err := c.inner.MappedPort(ctx, c.port+"/tcp")
	if err != nil {
		return "", fmt.Errorf("asking where %s is reached: %w", c.Name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.url = fmt.Sprintf("http://127.0.0.1:%d", port.Num())
	return c.url, nil
}

// find waits until the engine reports the address of the part. A part that ended because
// its dependencies were missing has no port until it is restarted.
func (c *Container) find(ctx context.Context) error {
	var ended error
	err := Until(ctx, func() error {
		if ended = c.refused(ctx); ended != nil {
			return nil
		}
		_, err := c.Locate(ctx)
		if err == nil {
			return nil
		}
		if running, _, asked := c.Running(ctx); asked == nil && !running { // a restarting container counts as running
			ended = err
			return nil
		}
		return err
	})
	if err = errors.Join(err, ended); err != nil {
		return fmt.Errorf("%w%s", err, c.tail(context.WithoutCancel(ctx)))
	}
	return nil
}

// Kill kills the part with SIGKILL, as a power cut would. It is not restarted.
func (c *Container) Kill(ctx context.Context) error {
	if _, err := c.engine.docker.ContainerKill(ctx, c.ID(), client.ContainerKillOptions{Signal: "SIGKILL"}); err != nil {
		return fmt.Errorf("killing %s: %w", c.Name, err)
	}
	return nil
}

// Signal sends a signal, such as "SIGTERM", and does not wait for its effect.
func (c *Container) Signal(ctx context.Context, signal string) error {
	if _, err := c.engine.docker.ContainerKill(ctx, c.ID(), client.ContainerKillOptions{Signal: signal}); err != nil {
		return fmt.Errorf("sending %s to %s: %w", signal, c.Name, err)
	}
	return nil
}

// Stop stops the part as an operator does: SIGTERM, then time to drain. It is killed if it
// takes longer than patience.
func (c *Container) Stop(ctx context.Context, patience time.Duration) error {
	if err := c.inner.Stop(ctx, &patience); err != nil {
		return fmt.Errorf("stopping %s: %w", c.Name, err)
	}
	return nil
}

// Start starts a part that was stopped or killed. It keeps its volumes and gets a new URL.
func (c *Container) Start(ctx context.Context) error {
	if err := c.inner.Start(ctx); err != nil {
		return fmt.Errorf("starting %s again: %w", c.Name, err)
	}
	return c.find(ctx)
}

// Pause freezes every process of the part. Connections to it remain open.
func (c *Container) Pause(ctx context.Context) error {
	if _, err := c.engine.docker.ContainerPause(ctx, c.ID(), client.ContainerPauseOptions{}); err != nil {
		return fmt.Errorf("pausing %s: %w", c.Name, err)
	}
	return nil
}

// Resume continues a paused part.
func (c *Container) Resume(ctx context.Context) error {
	if _, err := c.engine.docker.ContainerUnpause(ctx, c.ID(), client.ContainerUnpauseOptions{}); err != nil {
		return fmt.Errorf("resuming %s: %w", c.Name, err)
	}
	return nil
}

// Cut disconnects the part from a network of the file, such as "bus". Its processes continue,
// but no traffic passes between them and the other parts there. Connections are not closed:
// they remain until a peer gives them up. Ports that are published on that network are
// disconnected too.
func (c *Container) Cut(ctx context.Context, network string) error {
	s, err := c.endpoint(network)
	if err == nil {
		_, err = c.engine.docker.NetworkDisconnect(ctx, s.network, client.NetworkDisconnectOptions{Container: c.ID()})
	}
	if err != nil {
		return fmt.Errorf("cutting %s off the network %s: %w", c.Name, network, err)
	}
	return nil
}

// Reconnect connects the part again to a network that Cut disconnected. Its name is the same,
// but its address may change unless the file specifies it.
func (c *Container) Reconnect(ctx context.Context, network string) error {
	s, err := c.endpoint(network)
	if err == nil {
		_, err = c.engine.docker.NetworkConnect(ctx, s.network, client.NetworkConnectOptions{Container: c.ID(), EndpointConfig: s.settings(c.Name)})
	}
	if err != nil {
		return fmt.Errorf("putting %s back on the network %s: %w", c.Name, network, err)
	}
	return nil
}

func (c *Container) endpoint(network string) (endpoint, error) {
	s, ok := c.endpoints[network]
	if !ok {
		return s, fmt.Errorf("it is on %s alone", strings.Join(slices.Sorted(maps.Keys(c.endpoints)), ", "))
	}
	return s, nil
}

func (s endpoint) settings(name string) *network.EndpointSettings {
	e := &network.EndpointSettings{Aliases: []string{name}}
	if s.address.IsValid() {
		e.IPAMConfig = &network.EndpointIPAMConfig{IPv4Address: s.address}
	}
	return e
}

// Running reports whether the part runs, and the exit code if it does not.
func (c *Container) Running(ctx context.Context) (running bool, code int, err error) {
	state, err := c.inner.State(ctx)
	if err != nil {
		return false, 0, fmt.Errorf("asking how %s is: %w", c.Name, err)
	}
	return state.Running, state.ExitCode, nil
}

// refusedCode is the exit code of a program that refuses its configuration or its flags.
const refusedCode = 2

// refused returns an error if the part refused its configuration when it ended last. The engine
// restarts it, but it ends again until the file changes.
func (c *Container) refused(ctx context.Context) error {
	state, err := c.inner.State(ctx)
	if err == nil && state.ExitCode == refusedCode && (state.Restarting || !state.Running) {
		return fmt.Errorf("it ended with code %d, because it does not accept its configuration", refusedCode)
	}
	return nil // [Container.Locate] reports an engine that does not answer
}

// Health returns the engine's status of the health check of the file, "starting", "healthy" or
// "unhealthy", and the output of the last check.
func (c *Container) Health(ctx context.Context) (status, said string, err error) {
	state, err := c.inner.State(ctx)
	if err != nil {
		return "", "", fmt.Errorf("asking how %s is: %w", c.Name, err)
	}
	if state.Health == nil {
		return "", "", fmt.Errorf("%s has no health check", c.Name)
	}
	if n := len(state.Health.Log); n > 0 {
		said = state.Health.Log[n-1].Output
	}
	return string(state.Health.Status), said, nil
}

// Logs returns the output of both streams of the part since a time, or all of it for the zero
// time.
func (c *Container) Logs(ctx context.Context, since time.Time) (string, error) {
	return c.logs(ctx, since, "all")
}

func (c *Container) logs(ctx context.Context, since time.Time, lines string) (string, error) {
	o := client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: lines}
	if !since.IsZero() {
		o.Since = since.UTC().Format(time.RFC3339Nano)
	}
	r, err := c.engine.docker.ContainerLogs(ctx, c.ID(), o)
	if err != nil {
		return "", fmt.Errorf("reading the log of %s: %w", c.Name, err)
	}
	defer r.Close()
	var text strings.Builder
	if _, err := stdcopy.StdCopy(&text, &text, r); err != nil && !errors.Is(err, io.EOF) {
		return text.String(), fmt.Errorf("reading the log of %s: %w", c.Name, err)
	}
	return text.String(), nil
}

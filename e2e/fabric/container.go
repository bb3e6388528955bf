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

// Container is one part of a fabric. Its methods are for faults: they return when the
// engine says that it is done.
type Container struct {
	// Name is that of the service, such as "worker-2"; the others reach it by this name.
	Name string

	engine *engine
	inner  *testcontainers.DockerContainer
	port   string // the first of its ports; "" where it has none
	// endpoints are its places on networks, by their names in the file.
	endpoints map[string]endpoint

	mu  sync.Mutex
	url string
}

// endpoint is a place on a network: what that is called at the engine, and the address of a
// part that keeps its own.
type endpoint struct {
	network string
	address netip.Addr
}

// ID is that of the container at the engine.
func (c *Container) ID() string { return c.inner.GetContainerID() }

// URL is where the test reaches the part, such as "http://127.0.0.1:32768"; "" for one
// without ports. It is another one after each start, and what it was at the last start or
// Locate.
func (c *Container) URL() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.url
}

// Locate asks the engine for the URL of a part that may have been started again by itself.
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

// find waits until the engine says where the part is reached. One that ended because
// what it needs was not there yet has no port until it is started again.
func (c *Container) find(ctx context.Context) error {
	var ended error
	err := Until(ctx, func() error {
		_, err := c.Locate(ctx)
		if err == nil {
			return nil
		}
		if running, _, asked := c.Running(ctx); asked == nil && !running { // what is started again counts as running
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

// Kill ends the part as a power cut does: SIGKILL, and nothing starts it again.
func (c *Container) Kill(ctx context.Context) error {
	if _, err := c.engine.docker.ContainerKill(ctx, c.ID(), client.ContainerKillOptions{Signal: "SIGKILL"}); err != nil {
		return fmt.Errorf("killing %s: %w", c.Name, err)
	}
	return nil
}

// Signal sends a signal, such as "SIGTERM", and does not wait for what comes of it.
func (c *Container) Signal(ctx context.Context, signal string) error {
	if _, err := c.engine.docker.ContainerKill(ctx, c.ID(), client.ContainerKillOptions{Signal: signal}); err != nil {
		return fmt.Errorf("sending %s to %s: %w", signal, c.Name, err)
	}
	return nil
}

// Stop ends the part as an operator does: SIGTERM, then time to drain. One that takes
// longer than patience is killed.
func (c *Container) Stop(ctx context.Context, patience time.Duration) error {
	if err := c.inner.Stop(ctx, &patience); err != nil {
		return fmt.Errorf("stopping %s: %w", c.Name, err)
	}
	return nil
}

// Start starts a part again that was stopped or killed. It keeps its volumes, and gets
// another URL.
func (c *Container) Start(ctx context.Context) error {
	if err := c.inner.Start(ctx); err != nil {
		return fmt.Errorf("starting %s again: %w", c.Name, err)
	}
	return c.find(ctx)
}

// Pause stops every process of the part where it stands; connections to it stay open.
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

// Cut takes the part off a network of the file, such as "bus": its processes continue, and
// nothing passes between them and the other parts there. Nobody is told; connections stay
// as they are until somebody gives them up. Ports that are published on that network are
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

// Reconnect connects the part again to a network that Cut disconnected. Its name is the same; its
// address may be another one where the file gives it none.
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

// Running says whether the part runs, and the exit code of one that does not.
func (c *Container) Running(ctx context.Context) (running bool, code int, err error) {
	state, err := c.inner.State(ctx)
	if err != nil {
		return false, 0, fmt.Errorf("asking how %s is: %w", c.Name, err)
	}
	return state.Running, state.ExitCode, nil
}

// Health is what the engine says of the health check of the file: "starting", "healthy" or
// "unhealthy", and what the last check wrote.
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

// Logs returns what the part wrote since a time, both streams; all of it for the zero time.
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

package fabric

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
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

	mu  sync.Mutex
	url string
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
	_, err := c.Locate(ctx)
	return err
}

// Pause stops every process of the part where it stands; connections to it stay open.
func (c *Container) Pause(ctx context.Context) error {
	if _, err := c.engine.docker.ContainerPause(ctx, c.ID(), client.ContainerPauseOptions{}); err != nil {
		return fmt.Errorf("pausing %s: %w", c.Name, err)
	}
	return nil
}

// Resume lets a paused part go on.
func (c *Container) Resume(ctx context.Context) error {
	if _, err := c.engine.docker.ContainerUnpause(ctx, c.ID(), client.ContainerUnpauseOptions{}); err != nil {
		return fmt.Errorf("resuming %s: %w", c.Name, err)
	}
	return nil
}

// Running says whether the part runs, and the exit code of one that does not.
func (c *Container) Running(ctx context.Context) (running bool, code int, err error) {
	state, err := c.inner.State(ctx)
	if err != nil {
		return false, 0, fmt.Errorf("asking how %s is: %w", c.Name, err)
	}
	return state.Running, state.ExitCode, nil
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

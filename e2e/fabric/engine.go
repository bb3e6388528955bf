package fabric

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// Labels of all created objects.
const (
	labelRun  = "dev.callyard.fabric"      // the fabric
	labelHost = "dev.callyard.fabric.host" // the host on which the test runs
	labelPID  = "dev.callyard.fabric.pid"  // the process of the test
)

// engine is the container engine of one fabric.
type engine struct {
	docker *testcontainers.DockerClient
	labels map[string]string
}

// openEngine connects to the engine and removes the leftovers of killed tests.
func openEngine(ctx context.Context, run string) (*engine, error) {
	// testcontainers reads both once, when it is first used. Its reaper would pull an
	// image, and its detection of the address fails inside a container.
	for name, value := range map[string]string{"TESTCONTAINERS_RYUK_DISABLED": "true", "TESTCONTAINERS_HOST_OVERRIDE": "127.0.0.1"} {
		if _, set := os.LookupEnv(name); !set {
			if err := os.Setenv(name, value); err != nil {
				return nil, fmt.Errorf("preparing testcontainers: %w", err)
			}
		}
	}
	docker, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err == nil {
		// testcontainers falls back to the usual socket if the selected engine does not
		// respond. The docker command, which builds the images, does not.
		if named := os.Getenv("DOCKER_HOST"); named != "" && docker.DaemonHost() != named {
			err = fmt.Errorf("the one at DOCKER_HOST=%s does not", named)
		} else {
			_, err = docker.Ping(ctx, client.PingOptions{})
		}
		if err != nil {
			_ = docker.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("no container engine answers, and this test cannot do without; start one (scripts/test.sh --setup does), or say in DOCKER_HOST where it is: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		_ = docker.Close()
		return nil, fmt.Errorf("asking for the name of this machine: %w", err)
	}
	e := &engine{docker: docker, labels: map[string]string{labelRun: run, labelHost: host, labelPID: strconv.Itoa(os.Getpid())}}
	if err := e.sweep(ctx); err != nil {
		_ = docker.Close()
		return nil, err
	}
	return e, nil
}

// sweep removes the leftovers of ended processes of this machine.
func (e *engine) sweep(ctx context.Context) error {
	return e.remove(ctx, make(client.Filters).Add("label", labelHost+"="+e.labels[labelHost]), func(labels map[string]string) bool {
		pid, err := strconv.Atoi(labels[labelPID])
		return err == nil && !alive(pid)
	})
}

// clear removes everything that this fabric created.
func (e *engine) clear(ctx context.Context) error {
	return e.remove(ctx, make(client.Filters).Add("label", labelRun+"="+e.labels[labelRun]), func(map[string]string) bool { return true })
}

// remove removes containers, then networks and volumes, that filters and chosen select.
// It is not an error if another process removes them first.
func (e *engine) remove(ctx context.Context, filters client.Filters, chosen func(labels map[string]string) bool) error {
	var errs []error
	failed := func(err error) {
		if err != nil && !cerrdefs.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	containers, err := e.docker.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filters})
	failed(err)
	for _, c := range containers.Items {
		if chosen(c.Labels) {
			failed(e.removeContainer(ctx, c.ID))
		}
	}
	networks, err := e.docker.NetworkList(ctx, client.NetworkListOptions{Filters: filters})
	failed(err)
	for _, n := range networks.Items {
		if chosen(n.Labels) {
			_, err := e.docker.NetworkRemove(ctx, n.ID, client.NetworkRemoveOptions{})
			failed(err)
		}
	}
	volumes, err := e.docker.VolumeList(ctx, client.VolumeListOptions{Filters: filters})
	failed(err)
	for _, v := range volumes.Items {
		if chosen(v.Labels) {
			_, err := e.docker.VolumeRemove(ctx, v.Name, client.VolumeRemoveOptions{Force: true})
			failed(err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing containers, networks and volumes of tests: %w", err)
	}
	return nil
}

// removeContainer removes a container and waits until it is gone. The engine may refuse that while it
// restarts the container, and another process may be removing it, so it is tried again.
func (e *engine) removeContainer(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, removeWithin)
	defer cancel()
	return Until(ctx, func() error {
		_, err := e.docker.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if cerrdefs.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// removeWithin limits the time to remove a container.
const removeWithin = 30 * time.Second

// alive reports whether a process exists, also if it belongs to another user.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

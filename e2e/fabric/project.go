package fabric

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/wait"
)

// startWithin limits the start of one container. It is not an expectation, because the machine
// is shared with other programs.
const startWithin = 2 * time.Minute

// Project is a running compose file, started with testcontainers. Containers are configured as
// in the file, except that their ports are free ports of this machine.
type Project struct {
	// File is the compose file.
	File Compose

	engine   *engine
	env      map[string]string // the variables of the file
	images   Images
	dir      string // the folder for "."
	run      string
	networks map[string]string // from names in the file to names at the engine
	moved    []subnetChange
	volumes  map[string]string

	mu         sync.Mutex
	containers []*Container // in the order of their start
}

// ProjectOptions is the environment of a compose file.
type ProjectOptions struct {
	Env    map[string]string // its variables
	Images Images            // by the parts of build.sh
	Dir    string            // the base folder of its paths
}

// OpenProject creates the networks and volumes of a file. Close removes them, also
// after an OpenProject that failed halfway.
func OpenProject(ctx context.Context, file Compose, o ProjectOptions) (*Project, error) {
	run := strings.ToLower(rand.Text()[:10])
	e, err := openEngine(ctx, run)
	if err != nil {
		return nil, err
	}
	p := &Project{File: file, engine: e, env: o.Env, images: o.Images, dir: o.Dir, run: run, networks: map[string]string{}, volumes: map[string]string{}}
	for name, n := range file.Networks {
		if err := p.network(ctx, name, n); err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	for name := range file.Volumes {
		p.volumes[name] = "callyard-" + run + "-" + name
		if _, err := e.docker.VolumeCreate(ctx, client.VolumeCreateOptions{Name: p.volumes[name], Labels: e.labels}); err != nil {
			return nil, errors.Join(fmt.Errorf("making the volume %s: %w", name, err), p.Close())
		}
	}
	return p, nil
}

// Close removes all objects of the project: containers with their data, networks, volumes.
func (p *Project) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	err := p.engine.clear(ctx)
	return errors.Join(err, p.engine.docker.Close())
}

// Up starts these services of the file concurrently. If none is named, it starts all:
// NATS and Redis, then init, then the others.
func (p *Project) Up(ctx context.Context, names ...string) error {
	if len(names) == 0 {
		var others []string
		for _, name := range slices.Sorted(maps.Keys(p.File.Services)) {
			if len(p.File.Services[name].Profiles) > 0 {
				continue
			}
			switch part := p.File.Services[name].part(); {
			case beginnings[part] != "":
				names = append(names, name)
			case part != partInit:
				others = append(others, name)
			}
		}
		if err := p.Up(ctx, names...); err != nil {
			return err
		}
		if err := p.provision(ctx); err != nil {
			return err
		}
		names = others
	}
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { _, errs[i] = p.Run(ctx, name, p.File.Services[name]) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// partInit is the image of the service that creates the streams and exits.
const partInit = "callyard"

// provision creates the streams, which every role needs to start.
func (p *Project) provision(ctx context.Context) error {
	for name, s := range p.File.Services {
		if s.part() != partInit {
			continue
		}
		c, err := p.Run(ctx, name, s)
		if err != nil {
			return err
		}
		state, err := c.inner.State(ctx)
		if err == nil && state.ExitCode != 0 {
			err = fmt.Errorf("it ended with code %d", state.ExitCode)
		}
		if err != nil {
			return fmt.Errorf("making the streams with %s: %w%s", name, err, c.tail(ctx))
		}
	}
	return nil
}

// Container returns the part with a name, or nil if there is none.
func (p *Project) Container(name string) *Container {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.containers {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Run starts a service, of the file or not, under a name by which the others reach it.
// When it returns, NATS and Redis are ready, and other services have started.
func (p *Project) Run(ctx context.Context, name string, s Service) (*Container, error) {
	image, ok := p.images[s.part()]
	if !ok {
		image = s.Image
	}
	r := testcontainers.ContainerRequest{
		Image: image, Cmd: s.Command, Labels: maps.Clone(p.engine.labels), Env: map[string]string{},
		Name: "callyard-" + p.run + "-" + name, NetworkAliases: map[string][]string{},
	}
	var errs []error
	for k, v := range s.Environment {
		text, err := expand(v, p.env)
		errs, r.Env[k] = append(errs, err), text
	}
	// Ports are published on the network on which the container is created.
	endpoints := map[string]endpoint{}
	for _, n := range slices.Backward(s.Networks) {
		at := p.networks[n.Name]
		if at == "" {
			errs = append(errs, fmt.Errorf("there is no network %s", n.Name))
		}
		r.Networks = append(r.Networks, at)
		r.NetworkAliases[at] = []string{name}
		s := endpoint{network: at}
		if n.Address != "" {
			a, err := p.address(n.Address)
			errs, s.address = append(errs, err), a
		}
		endpoints[n.Name] = s
	}
	hosts, err := p.hosts(s.ExtraHosts)
	errs = append(errs, err)
	bindings := network.PortMap{}
	loopback := func(text string) {
		port, err := network.ParsePort(text + "/tcp")
		errs = append(errs, err)
		bindings[port] = []network.PortBinding{{HostIP: netip.AddrFrom4([4]byte{127, 0, 0, 1})}}
	}
	for _, text := range s.Ports {
		text = text[strings.LastIndexByte(text, ':')+1:]
		r.ExposedPorts = append(r.ExposedPorts, text+"/tcp")
		loopback(text)
	}
	// Without ports, testcontainers would publish the image's ports on all interfaces.
	for _, text := range []string{"4222", "6222", "6379", "8080", "8081", "8222", "9090"} {
		loopback(text)
	}
	if len(s.Tmpfs) > 0 {
		r.Tmpfs = map[string]string{}
	}
	for _, t := range s.Tmpfs {
		at, options, _ := strings.Cut(t, ":")
		r.Tmpfs[at] = options
	}
	var mounts []mount.Mount
	for _, v := range s.Volumes {
		m, err := p.mount(v)
		errs, mounts = append(errs, err), append(mounts, m)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	r.ConfigModifier = func(c *container.Config) {
		if c.User = s.User; s.Health != nil {
			c.Healthcheck = &container.HealthConfig{Test: s.Health.Test, Interval: s.Health.Interval, Timeout: s.Health.Timeout, StartPeriod: s.Health.StartPeriod, Retries: s.Health.Retries}
		}
	}
	r.HostConfigModifier = func(h *container.HostConfig) {
		h.ReadonlyRootfs, h.CapDrop, h.SecurityOpt, h.GroupAdd, h.Mounts, h.ExtraHosts, h.PortBindings = s.ReadOnly, s.CapDrop, s.Security, s.Groups, mounts, hosts, bindings
		h.RestartPolicy = container.RestartPolicy{Name: container.RestartPolicyMode(s.Restart)}
	}
	r.EndpointSettingsModifier = func(all map[string]*network.EndpointSettings) {
		for _, s := range endpoints {
			if s.address.IsValid() && all[s.network] != nil {
				all[s.network].IPAMConfig = s.settings(name).IPAMConfig
			}
		}
	}
	if begun := beginnings[s.part()]; begun != "" && !slices.Contains(s.Command, "--sentinel") {
		r.WaitingFor = wait.ForLog(begun).WithStartupTimeout(startWithin)
	}
	if s.part() == partInit {
		r.WaitingFor = wait.ForExit().WithExitTimeout(startWithin)
	}
	inner, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{ContainerRequest: r, Started: true, Logger: log.NewNoopLogger()})
	c := &Container{Name: name, engine: p.engine, endpoints: endpoints}
	if d, ok := inner.(*testcontainers.DockerContainer); ok && d != nil {
		c.inner = d
		p.mu.Lock()
		p.containers = append(p.containers, c)
		p.mu.Unlock()
	}
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w%s", name, err, c.tail(ctx))
	}
	if len(s.Ports) > 0 {
		c.port = s.Ports[0][strings.LastIndexByte(s.Ports[0], ':')+1:]
	}
	return c, c.find(ctx)
}

// Remove removes the container of a service and frees its name, so that it can be run
// again. Its volumes are kept.
func (p *Project) Remove(ctx context.Context, name string) error {
	c := p.Container(name)
	if c == nil {
		return fmt.Errorf("removing %s: it does not run", name)
	}
	if _, err := p.engine.docker.ContainerRemove(ctx, c.ID(), client.ContainerRemoveOptions{Force: true}); err != nil {
		return fmt.Errorf("removing %s: %w", name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.containers = slices.DeleteFunc(p.containers, func(o *Container) bool { return o == c })
	return nil
}

// Empty recreates a volume of the file without its content. No container may use it.
func (p *Project) Empty(ctx context.Context, volume string) error {
	name := p.volumes[volume]
	if _, err := p.engine.docker.VolumeRemove(ctx, name, client.VolumeRemoveOptions{}); err != nil {
		return fmt.Errorf("removing the volume %s: %w", volume, err)
	}
	if _, err := p.engine.docker.VolumeCreate(ctx, client.VolumeCreateOptions{Name: name, Labels: p.engine.labels}); err != nil {
		return fmt.Errorf("making the volume %s: %w", volume, err)
	}
	return nil
}

// mount parses one of the volumes of a service. The source must exist: with the
// engine's short form, which binds use, the engine would create a missing source as a folder,
// as root and at each restart, among the user's files.
func (p *Project) mount(text string) (mount.Mount, error) {
	from, to, _ := strings.Cut(text, ":")
	to, mode, _ := strings.Cut(to, ":")
	m := mount.Mount{Type: mount.TypeBind, Source: from, Target: to, ReadOnly: mode == "ro"}
	switch {
	case strings.HasPrefix(from, "./"):
		m.Source = filepath.Join(p.dir, from)
	case !filepath.IsAbs(from):
		m.Type, m.Source = mount.TypeVolume, p.volumes[from]
		if m.Source == "" {
			return m, fmt.Errorf("there is no volume %s", from)
		}
		return m, nil
	}
	_, err := os.Stat(m.Source)
	return m, err
}

// beginnings maps images without an external probe to the log line that reports readiness.
var beginnings = map[string]string{"nats": "Server is ready", "redis": "Ready to accept connections"}

// tail returns the end of a log, for messages.
func (c *Container) tail(ctx context.Context) string {
	if c.inner == nil {
		return ""
	}
	text, err := c.logs(ctx, time.Time{}, "30")
	if err != nil {
		return ""
	}
	return "\n--- " + c.Name + ":\n" + text
}

// Watch shows the last lines that every part writes from now on, if the test fails.
func (p *Project) Watch(t testing.TB) {
	t.Helper()
	since := time.Now()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		p.mu.Lock()
		all := slices.Clone(p.containers)
		p.mu.Unlock()
		for _, c := range all {
			text, err := c.logs(ctx, since, "60")
			if err != nil {
				text = err.Error()
			}
			if text != "" {
				t.Logf("--- %s, since the test began:\n%s", c.Name, text)
			}
		}
	})
}

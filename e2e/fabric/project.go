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

// startWithin bounds the start of one container. It is no expectation: the machine is
// shared with whatever else runs.
const startWithin = 2 * time.Minute

// Project is a compose file on the engine, run by testcontainers: what the file says of a
// service holds for its container, except that its ports are free ones of this machine.
type Project struct {
	// File is what runs.
	File Compose

	engine   *engine
	env      map[string]string // what the file's variables stand for
	images   Images
	dir      string // what "." stands for
	run      string
	networks map[string]string // their names at the engine, by those of the file
	moved    []moved
	volumes  map[string]string

	mu         sync.Mutex
	containers []*Container // as they were started
}

// ProjectOptions are what a compose file needs around it.
type ProjectOptions struct {
	Env    map[string]string // its variables
	Images Images            // by the parts that build.sh makes
	Dir    string            // the folder that its paths begin at
}

// OpenProject makes the networks and volumes of a file. Close removes them again, also
// those of an OpenProject that failed half way.
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

// Close removes everything of the project: containers with their data, networks, volumes.
func (p *Project) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	err := p.engine.clear(ctx)
	return errors.Join(err, p.engine.docker.Close())
}

// Up starts these services of the file side by side. Where none is named it starts all:
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

// partInit is the image of the service that makes the streams and ends.
const partInit = "callyard"

// provision makes the streams, without which no role starts.
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

// Container returns the part that runs under a name, nil where none does.
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
// NATS and Redis are ready when it returns; of others the process has begun.
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
	// Ports are published on the network that the container begins with.
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
	// Without ports testcontainers publishes those that the image names, to everybody.
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

// Remove ends the container of a service and takes its name away, so that it can be run
// again. Its volumes stay.
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

// Empty makes a volume of the file again, without what was in it. No container may have it.
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

// mount reads one of the volumes of a service. What is to be mounted must be there: the
// short form of the engine, which binds are, makes a folder of what is not, and again at
// each restart, as root, in the middle of somebody's files.
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

// beginnings is what those say that are ready, who answer no probe from outside.
var beginnings = map[string]string{"nats": "Server is ready", "redis": "Ready to accept connections"}

// tail is the end of a log, for messages.
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

// Watch shows what every part wrote from now on, when the test fails: its last lines.
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

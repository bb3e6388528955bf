package fabric

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Fabric is a running Callyard.
type Fabric struct {
	// Key is the API key of a caller. PersonKey is the key of an approver in the group "ops",
	// for the approver's API and its pages.
	Key, PersonKey string

	// FrontDoors, Approvers and Workers are the parts, in the order of their start.
	FrontDoors, Approvers, Workers []*Container

	// Images are the images of the parts.
	Images Images

	project *Project
	options Options
	roles   roles
	dir     string
}

// roles are the services of the compose file that serve as templates for parts.
type roles struct{ frontDoor, approver, worker Service }

// Start starts a fabric for one test, waits until each of its servers can be called at each
// front door, and stops it when the test ends. If the test fails, the logs are shown.
func Start(t testing.TB, o Options) *Fabric {
	t.Helper()
	f, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	f.Watch(t)
	return f
}

// Open starts a fabric that several tests share: TestMain can open and close it.
// ctx applies to the start only.
func Open(ctx context.Context, o Options) (*Fabric, error) {
	f := &Fabric{options: o}
	if err := f.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a fabric: %w", err), f.Close())
	}
	return f, nil
}

func (f *Fabric) open(ctx context.Context) (err error) {
	o := &f.options
	o.FrontDoors, o.Approvers = max(o.FrontDoors, 1), max(o.Approvers, 1)
	if o.Workers == 0 {
		o.Workers = 1
	}
	if o.Source == "" {
		if o.Source, err = Source(ctx); err != nil {
			return err
		}
	}
	path := filepath.Join(o.Source, "deploy", "compose.yaml")
	if o.Cluster {
		path = filepath.Join(o.Source, "deploy", "compose.cluster.yaml")
	}
	file, err := ReadCompose(path)
	if err != nil {
		return err
	}
	if f.dir, err = os.MkdirTemp("", "callyard-fabric-"); err != nil {
		return err
	}
	env, err := f.lay(ctx)
	if err != nil {
		return err
	}
	f.Key, f.PersonKey = env["AGENT_KEY"], env["ANN_KEY"]
	// Report an engine that does not respond before anything is built.
	if f.project, err = OpenProject(ctx, file, ProjectOptions{Env: env, Dir: f.dir}); err != nil {
		return err
	}
	f.Images = maps.Clone(o.Images)
	if f.Images == nil {
		f.Images = Images{}
	}
	for _, s := range file.Services {
		if part := s.part(); f.Images[part] == "" {
			made, err := Build(ctx, o.Source, part)
			if err != nil {
				return err
			}
			maps.Copy(f.Images, made)
		}
	}
	f.project.images = f.Images
	return f.start(ctx, file)
}

// start starts the parts that store data, then all others.
func (f *Fabric) start(ctx context.Context, file Compose) error {
	var stores []string
	for _, name := range slices.Sorted(maps.Keys(file.Services)) {
		switch s := file.Services[name]; s.part() {
		case "nats", "redis":
			stores = append(stores, name)
		case "frontdoor":
			f.roles.frontDoor = s
		case "approver":
			f.roles.approver = s
		case "worker":
			f.roles.worker = s
		}
	}
	if err := f.project.Up(ctx, stores...); err != nil {
		return err
	}
	if err := f.project.provision(ctx); err != nil {
		return err
	}
	o := &f.options
	f.FrontDoors, f.Approvers, f.Workers = make([]*Container, o.FrontDoors), make([]*Container, o.Approvers), make([]*Container, max(o.Workers, 0))
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	run := func(c **Container, name string, s Service) {
		wg.Go(func() {
			var err error
			if *c, err = f.project.Run(ctx, name, s); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	for i := range f.FrontDoors {
		run(&f.FrontDoors[i], fmt.Sprintf("frontdoor-%d", i+1), o.FrontDoor.service(f.roles.frontDoor))
	}
	for i := range f.Approvers {
		run(&f.Approvers[i], fmt.Sprintf("approver-%d", i+1), o.Approver.service(f.roles.approver))
	}
	for i := range f.Workers {
		name := fmt.Sprintf("worker-%d", i+1)
		s, err := f.worker(name, o.Worker)
		if err != nil {
			return err
		}
		run(&f.Workers[i], name, s)
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := f.answers(ctx); err != nil {
		return err
	}
	for _, w := range f.Workers {
		if err := f.serves(ctx, w.Name, o.Worker); err != nil {
			return err
		}
	}
	return nil
}

// AddFrontDoor starts another front door, appends it to FrontDoors, and waits
// until it is ready.
func (f *Fabric) AddFrontDoor(ctx context.Context, p Part) (*Container, error) {
	return f.add(ctx, &f.FrontDoors, fmt.Sprintf("frontdoor-%d", len(f.FrontDoors)+1), p.service(f.roles.frontDoor))
}

// AddApprover starts another approver, appends it to Approvers, and waits until
// it is ready.
func (f *Fabric) AddApprover(ctx context.Context, p Part) (*Container, error) {
	return f.add(ctx, &f.Approvers, fmt.Sprintf("approver-%d", len(f.Approvers)+1), p.service(f.roles.approver))
}

func (f *Fabric) add(ctx context.Context, to *[]*Container, name string, s Service) (*Container, error) {
	c, err := f.project.Run(ctx, name, s)
	if err != nil {
		return nil, err
	}
	*to = append(*to, c)
	return c, f.Ready(ctx, c)
}

// AddWorker starts another worker, appends it to Workers, and waits until its servers can be
// called.
func (f *Fabric) AddWorker(ctx context.Context, w Worker) (*Container, error) {
	name := fmt.Sprintf("worker-%d", len(f.Workers)+1)
	s, err := f.worker(name, w)
	if err != nil {
		return nil, err
	}
	c, err := f.project.Run(ctx, name, s)
	if err != nil {
		return nil, err
	}
	f.Workers = append(f.Workers, c)
	return c, f.serves(ctx, name, w)
}

// worker returns the service of one worker, and writes its servers file.
func (f *Fabric) worker(name string, w Worker) (Service, error) {
	s := f.roles.worker.clone()
	if w.Image != "" {
		s.Image = w.Image
	}
	servers := w.Servers
	if servers == nil {
		servers = demo()
	}
	text, err := json.MarshalIndent(map[string]any{"mcpServers": servers}, "", "  ")
	if err != nil {
		return s, fmt.Errorf("writing the servers of %s: %w", name, err)
	}
	if err := write(filepath.Join(f.dir, "examples", name+".json"), text, 0o644); err != nil {
		return s, err
	}
	s.Environment = with(with(s.Environment, map[string]string{"CALLYARD_WORKER_NAME": name, "CALLYARD_WORKER_SERVERS": "/etc/callyard/" + name + ".json"}), w.Env)
	s.Volumes = append(s.Volumes, w.Mounts...)
	s.Ports = append(s.Ports, "9090") // of its metrics
	if w.Engine {
		socket := strings.TrimPrefix(f.project.engine.docker.DaemonHost(), "unix://")
		group, err := groupOf(socket)
		if err != nil {
			return s, fmt.Errorf("giving %s the container engine: %w", name, err)
		}
		s.Volumes, s.Groups = append(s.Volumes, socket+":/var/run/docker.sock"), append(s.Groups, group)
	}
	return s, nil
}

// Watch shows the output of the parts during the test if it fails.
func (f *Fabric) Watch(t testing.TB) {
	t.Helper()
	f.project.Watch(t)
}

// URL returns the URL of the first front door.
func (f *Fabric) URL() string { return f.FrontDoors[0].URL() }

// ApproverURL returns the URL of the first approver, for its pages and its API.
func (f *Fabric) ApproverURL() string { return f.Approvers[0].URL() }

// Part returns a part by its name in the compose file, such as "nats", "redis-1" or
// "frontdoor-2", or nil if there is none.
func (f *Fabric) Part(name string) *Container { return f.project.Container(name) }

// Close removes all parts with their data. The parts do not drain; stop them first
// if their shutdown is part of the test.
func (f *Fabric) Close() error {
	var errs []error
	if f.project != nil {
		errs = append(errs, f.project.Close())
	}
	if f.dir != "" {
		errs = append(errs, os.RemoveAll(f.dir))
	}
	return errors.Join(errs...)
}

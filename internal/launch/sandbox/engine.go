package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moby/moby/client"

	"github.com/callyard/callyard/internal/launch"
)

// Labels of every container of Callyard.
const (
	labelOwner    = "dev.callyard.owner"    // id of the worker that started it
	labelScope    = "dev.callyard.scope"    // workers that can see each other
	labelServer   = "dev.callyard.server"   // id of the server
	labelDeadline = "dev.callyard.deadline" // Unix seconds; after that the container may be removed
)

const (
	openTimeout = 10 * time.Second
	opTimeout   = 30 * time.Second // for creating, starting or removing one container
	closeLimit  = 20 * time.Second
)

// Limits are the limits of all sandboxes of one [Engine]. Zero values mean the defaults.
type Limits struct {
	Containers int // maximum number, default 64
	Warm       int // maximum number waiting for a use, default half of Containers
	Starts     int // concurrent starts, default the number of local processors
}

// Options select the engine and identify its user.
type Options struct {
	// Host is the address of the engine in the syntax of DOCKER_HOST. If empty, it is the value of
	// DOCKER_HOST, or else the usual socket. A remote engine requires certificates.
	Host string
	// Certs is a directory with ca.pem, cert.pem and key.pem. If empty, it is the value of
	// DOCKER_CERT_PATH.
	Certs string
	// Owner is the id of this worker, unique for each start.
	Owner string
	// Scope is shared by workers that can tell whether another one is alive. Containers of other scopes
	// are left alone.
	Scope  string
	Limits Limits
	// Remember and Forget are those of [launch.Launcher]: a note of Remember survives this process; see
	// [Sweep]. They may be nil.
	Remember, Forget func(note string)
	// Forwarder is the image of the forwarder, which only sandboxes with egress need. If empty, it is
	// [DefaultForwarder]. Egress is called concurrently for each destination that a sandbox requests;
	// it may be nil.
	Forwarder string
	Egress    func(server string, allowed bool)
	Log       *slog.Logger
}

// Engine is a container engine for one worker. It is safe for concurrent use.
type Engine struct {
	o      Options
	log    *slog.Logger
	client *client.Client
	about  About
	note   string        // for Sweep; empty without Remember
	total  chan struct{} // one element for each container
	starts chan struct{} // one element for each start in progress
	warm   chan struct{} // one element for each container that waits for its use
	count  atomic.Uint32 // containers created so far

	ctx    context.Context // ends when Close starts
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	starting sync.WaitGroup        // Starts in progress; added to under mu while not closed
	live     map[string]*Container // by name
	making   map[string]bool       // names of containers that are being created
}

// About describes an engine.
type About struct {
	Host         string
	Version      string
	API          string
	Cgroup       string   // "1" or "2"
	Runtimes     []string // sorted
	Default      string   // default runtime
	Runsc        bool     // the runtime runsc exists
	Seccomp      bool
	AppArmor     bool
	SELinux      bool
	Rootless     bool
	UserNS       bool     // root in containers is not root on the host
	Warnings     []string // limits that it cannot enforce
	ignoreLimits []string // runtimes configured to ignore cgroups
}

var ownerPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,100}$`)

// Open connects to an engine and checks whether it can enforce a sandbox. It starts nothing. The
// error is a *schema.Error.
func Open(ctx context.Context, o Options) (*Engine, error) {
	if !ownerPattern.MatchString(o.Owner) {
		return nil, launch.Failed("The owner %q of containers is not a valid name; use letters, digits, \".\", \"_\" and \"-\".", o.Owner)
	}
	if o.Scope == "" {
		o.Scope = "callyard"
	}
	set := func(p *int, fallback int) {
		if *p <= 0 {
			*p = fallback
		}
	}
	set(&o.Limits.Containers, 64)
	set(&o.Limits.Warm, max(o.Limits.Containers/2, 1))
	set(&o.Limits.Starts, runtime.NumCPU())
	d, err := newDial(o.Host, o.Certs)
	if err != nil {
		return nil, err
	}
	c, err := d.client()
	if err != nil {
		return nil, launch.Failed("The container engine at %s cannot be used: %w.", d.shown, err)
	}
	e := &Engine{
		o: o, log: o.Log, client: c,
		total:  make(chan struct{}, o.Limits.Containers),
		starts: make(chan struct{}, o.Limits.Starts),
		warm:   make(chan struct{}, o.Limits.Warm),
		live:   make(map[string]*Container),
		making: make(map[string]bool),
	}
	ctx, done := context.WithTimeout(ctx, openTimeout)
	defer done()
	if e.about, err = look(ctx, c, d.shown); err != nil {
		_ = c.Close() // the first error counts
		return nil, err
	}
	if o.Remember != nil {
		e.note = d.note(o.Owner)
		o.Remember(e.note)
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.work.Go(e.watch)
	e.log.Info("container engine found", "host", e.about.Host, "version", e.about.Version, "api", e.about.API,
		"cgroup", e.about.Cgroup, "runtimes", e.about.Runtimes, "apparmor", e.about.AppArmor, "selinux", e.about.SELinux,
		"rootless", e.about.Rootless, "userns", e.about.UserNS, "warnings", e.about.Warnings)
	return e, nil
}

// look queries the engine and refuses one that cannot enforce limits.
func look(ctx context.Context, c *client.Client, host string) (About, error) {
	ping, err := c.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true})
	if err != nil {
		return About{}, unreachable(host, err)
	}
	got, err := c.Info(ctx, client.InfoOptions{})
	if err != nil {
		return About{}, unreachable(host, err)
	}
	info := &got.Info
	a := About{
		Host: host, Version: info.ServerVersion, API: c.ClientVersion(), Cgroup: info.CgroupVersion, Default: info.DefaultRuntime,
		Runtimes: slices.Sorted(maps.Keys(info.Runtimes)), Warnings: info.Warnings,
	}
	for name, rt := range info.Runtimes {
		a.Runsc = a.Runsc || name == "runsc"
		if slices.ContainsFunc(rt.Args, func(arg string) bool { return strings.Contains(arg, "ignore-cgroups") }) {
			a.ignoreLimits = append(a.ignoreLimits, name)
		}
	}
	for _, option := range info.SecurityOptions {
		name, _, _ := strings.Cut(strings.TrimPrefix(option, "name="), ",")
		switch name {
		case "seccomp":
			a.Seccomp = true
		case "apparmor":
			a.AppArmor = true
		case "selinux":
			a.SELinux = true
		case "rootless":
			a.Rootless = true
		case "userns":
			a.UserNS = true
		}
	}
	var missing []string
	for what, has := range map[string]bool{
		"limit memory": info.MemoryLimit, "limit processes": info.PidsLimit, "limit cores": info.CPUCfsQuota, "filter system calls (seccomp)": a.Seccomp,
	} {
		if !has {
			missing = append(missing, what)
		}
	}
	slices.Sort(missing)
	switch {
	case ping.OSType != "" && ping.OSType != "linux":
		return a, launch.Failed("The container engine at %s runs %s containers; a sandbox requires Linux.", host, ping.OSType)
	case len(missing) > 0:
		return a, launch.Failed("The container engine at %s cannot %s, so a sandbox there would not isolate; enable this in its kernel, or delegate these cgroup controllers to it.", host, strings.Join(missing, " and cannot "))
	}
	return a, nil
}

// About returns the description of the engine at the time of Open.
func (e *Engine) About() About { return e.about }

// Containers returns the current number of containers.
func (e *Engine) Containers() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.live)
}

// Close refuses further starts, kills and removes the remaining containers, and waits for
// everything that it started. Close the pools first.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closed = true
	left := slices.Collect(maps.Values(e.live))
	e.mu.Unlock()
	e.cancel()
	for _, c := range left {
		c.kill("was killed because the worker is shutting down")
	}
	e.starting.Wait()
	e.work.Wait()
	ctx, done := context.WithTimeout(context.Background(), closeLimit)
	defer done()
	var err error
	if n, sweepErr := sweepOwner(ctx, e.client, e.o.Owner); sweepErr != nil {
		err = fmt.Errorf("removing the last containers: %w", sweepErr)
	} else if n > 0 {
		e.log.Warn("leftover containers are removed", "containers", n)
	}
	if e.note != "" && e.o.Forget != nil {
		e.o.Forget(e.note)
	}
	return errors.Join(err, e.client.Close())
}

func unreachable(host string, err error) error {
	return launch.Unavailable("The container engine at %s does not respond, so calls cannot run in containers, and they are not run without one; start the engine, or give this process access to it (%w).", host, err)
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/embedded"
	"github.com/callyard/callyard/internal/episode"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/kit/dirstate"
	"github.com/callyard/callyard/internal/kit/httpguard"
	"github.com/callyard/callyard/internal/lifecycle"
	"github.com/callyard/callyard/internal/listen"
	"github.com/callyard/callyard/internal/rollout"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/setup"
	"github.com/callyard/callyard/internal/setup/frontdoorrole"
	"github.com/callyard/callyard/internal/setup/workerrole"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/worker"
	"github.com/callyard/callyard/pkg/bus"
)

// environmentsListen is the default listen address of environments.
const environmentsListen = "127.0.0.1:8090"

func envCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "env",
		Short: "Serve environments to programs that train models",
		Long: "env serves the environments of a file to trainers, over the protocols of OpenEnv 0.10, the Open Reward Standard and NeMo Gym, and a reward service.\n" +
			"It runs a front door and a worker with an embedded NATS server in this process, over the servers of --servers. With --nats it uses the workers of a running fleet.",
		Example: "  callyard env --environments env.yaml --servers mcp.json",
		Args:    takes(0, 0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runEnv(cmd) },
	}
	setup.AddFlags(cmd.Flags(), "servers", "listen", "data", "nats", "policy", "log-level", "log-format")
	cmd.Flags().Lookup("listen").Usage = "address of the environments (default " + environmentsListen + ")"
	cmd.Flags().String("environments", "", "the environments file")
	_ = cmd.MarkFlagRequired("environments") // the flag is there
	check := &cobra.Command{
		Use: "check FILE", Short: "Check an environments file and the tasks that it names", Args: takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := episode.Load(args[0])
			if err != nil {
				return err
			}
			return sayEnvironments(cmd.OutOrStdout(), f)
		},
	}
	cmd.AddCommand(check)
	return cmd
}

// sayEnvironments lists environments with their splits.
func sayEnvironments(w io.Writer, f *episode.File) error {
	var b strings.Builder
	for _, e := range f.Sorted() {
		fmt.Fprintf(&b, "%s: isolation %s", e.Name(), e.Isolation)
		for _, s := range e.Splits() {
			list, err := e.Tasks(s.Name)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, ", %s %d", s.Name, len(list))
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// environments holds everything that env runs.
type environments struct {
	cfg      *setup.Config
	file     *episode.File
	served   []worker.Served
	base     string           // the directory of all copies of state directories
	nats     *embedded.Server // nil with --nats
	local    bus.Local
	door     *frontdoor.FrontDoor
	manager  *episode.Manager
	server   *rollout.Server
	http     *http.Server
	draining atomic.Bool
	serving  chan struct{}
	out      io.Writer
}

func runEnv(cmd *cobra.Command) error {
	path, err := cmd.Flags().GetString("environments")
	if err != nil {
		return err
	}
	file, err := episode.Load(path)
	if err != nil {
		return err
	}
	var workers workerrole.Setup
	door := frontdoorrole.Setup{NoListener: true}
	fleet := cmd.Flags().Changed("nats")
	roles := []setup.RoleSetup{door.Role(), workers.Role()}
	if fleet {
		roles = roles[:1]
	}
	p, err := setup.Prepare(cmd.Flags(), cmd.ErrOrStderr(), defaultServers(), roles...)
	if err != nil {
		return err
	}
	p.LogFindings()
	cfg := p.Config
	if faults := checkTrainers(cfg); len(faults) > 0 {
		return &config.Faults{List: faults}
	}
	if cfg.FrontDoor.Listen == settings.FrontDoorDefaults().Listen && !cmd.Flags().Changed("listen") {
		cfg.FrontDoor.Listen = environmentsListen
	}
	cfg.FrontDoor.DrainDelay = 0 // no load balancer distributes trainers over front doors
	e := &environments{cfg: cfg, file: file, serving: make(chan struct{}), out: cmd.OutOrStdout()}
	metrics := telemetry.NewMetrics()
	failed := make(chan error, 1)
	parts := []lifecycle.Part{cfg.TracesPart("callyard-env", metrics, p.Log)}
	connect := func(ctx context.Context, name string, keep bool) (*bus.Conn, error) {
		return cfg.Connect(ctx, name, keep, p.Log)
	}
	if !fleet {
		e.served = workers.Served()
		if err := cfg.OwnKey(); err != nil {
			return err
		}
		setup.TuneRuntime(len(e.served))
		connect = func(ctx context.Context, name string, keep bool) (*bus.Conn, error) {
			return bus.Connect(ctx, bus.Options{InProcess: e.nats, Name: name, Local: &e.local, KeepWhileDown: keep, Log: p.Log})
		}
		parts = append(parts,
			lifecycle.Part{Name: "embedded NATS", Start: func(context.Context) (err error) {
				if e.nats, err = embedded.Start(embedded.Options{Dir: cfg.Data, Log: p.Log}); err != nil {
					return err
				}
				// The folder and its episodes belong to this process only from here on.
				if err := e.lease(); err != nil {
					return errors.Join(err, e.nats.Close())
				}
				return nil
			}, Stop: func(context.Context) error { return e.nats.Close() }},
			workers.Part(cfg, connect, p.Policy, metrics, p.Log, func(*worker.Worker) {}),
		)
	}
	parts = append(parts,
		door.Part(cfg, connect, p.Policy, metrics, p.Log, func(d *frontdoor.FrontDoor) { e.door = d }),
		lifecycle.Part{Name: "environments", Failed: failed, Grace: 30 * time.Second,
			Start: func(ctx context.Context) error { return e.start(ctx, metrics, p, failed) }, Stop: e.stop},
	)
	err = lifecycle.Run(cmd.Context(), p.Log, parts...)
	if e.base != "" {
		err = errors.Join(err, dirstate.Remove(e.base))
	}
	if err != nil {
		setup.Fail(cmd.ErrOrStderr(), "callyard", err)
		return ended(lifecycle.ExitCode(err))
	}
	return nil
}

// serversReady limits the time that the start waits for servers. Episodes of a server that is not
// ready by then are refused until it is.
const serversReady = 30 * time.Second

// start serves the environments.
func (e *environments) start(ctx context.Context, metrics *telemetry.Metrics, p *setup.Prepared, failed chan<- error) error {
	keys, err := authn.NewKeys(e.cfg.FrontDoor.Keys)
	if err != nil {
		return err
	}
	origin, err := httpguard.New(e.cfg.FrontDoor.Origins, keys.Configured)
	if err != nil {
		return err
	}
	l, err := listen.Open(ctx, e.cfg.FrontDoor.Listen, listen.TLS{Cert: e.cfg.FrontDoor.CertFile, Key: e.cfg.FrontDoor.KeyFile}, p.Log)
	if err != nil {
		return fmt.Errorf("listening on %s: %w; --listen names another address", e.cfg.FrontDoor.Listen, err)
	}
	e.awaitServers(ctx)
	e.manager = episode.New(episode.Options{
		File: e.file, Calls: e.door.Calls(), Catalog: e.door.Catalog(), Workers: e.door.Router(), Metrics: metrics.Episodes(), Traces: e.cfg.Spans(), Log: p.Log,
	})
	e.server = rollout.New(rollout.Options{Episodes: e.manager, Keys: keys, Origin: origin, Metrics: metrics.Handler(), Version: setup.Version()})
	e.http = listen.NewServer(e.server, &e.draining, p.Log)
	go func() {
		defer close(e.serving)
		listen.Serve(e.http, l, e.cfg.FrontDoor.Listen, failed)
	}()
	return e.announce(l.Addr())
}

func (e *environments) announce(at net.Addr) error {
	base := listen.Scheme(e.cfg.FrontDoor.CertFile) + "://" + at.String()
	var names []string
	for _, one := range e.manager.Environments() {
		names = append(names, one.Name())
	}
	_, err := fmt.Fprintf(e.out, "The environments are served at %s: %s\n", base, strings.Join(names, ", "))
	return err
}

// stop ends the listener, the sessions and the episodes.
func (e *environments) stop(ctx context.Context) error {
	e.draining.Store(true)
	e.server.Close() // the HTTP server does not track connections that became WebSockets
	err := e.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, e.http.Close())
	}
	<-e.serving
	e.manager.Close()
	return err
}

// awaitServers waits for the servers whose tools the environments use. It does not wait for
// programs that attach, because they may attach at any time.
func (e *environments) awaitServers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, serversReady)
	defer cancel()
	for _, s := range e.served {
		if id := s.Session.Spec.ID; e.uses(string(id)) && !s.Session.Attached {
			if _, err := e.door.Catalog().Operator().Await(ctx, id); err != nil {
				return
			}
		}
	}
}

// uses reports whether an environment uses tools of the server.
func (e *environments) uses(server string) bool {
	for _, one := range e.file.Environments {
		if one.Uses(server) {
			return true
		}
	}
	return false
}

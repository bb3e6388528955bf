package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/cmd/internal/setup"
	"github.com/callyard/callyard/internal/approver"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/embedded"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/lifecycle"
	"github.com/callyard/callyard/internal/listen"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/worker"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

func upCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run front door, worker, approver and NATS in this process",
		Long: "up runs the whole fabric in one process: front door, worker and approver over an embedded NATS server with JetStream.\n" +
			"Without --servers (and without MCP_CONFIG_PATH) it serves the built-in demo tools.",
		Example: "  callyard up\n  callyard up --servers mcp.json --listen 127.0.0.1:9000",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return up(cmd) },
	}
	setup.AddFlags(cmd.Flags(), "servers", "listen", "approver-listen", "data", "redis", "policy", "log-level", "log-format")
	return cmd
}

func up(cmd *cobra.Command) error {
	cfg, err := setup.Load(cmd.Flags())
	if err != nil {
		return err
	}
	stderr, stdout := cmd.ErrOrStderr(), cmd.OutOrStdout()
	log, err := cfg.Logger(stderr)
	if err != nil {
		return err
	}
	served, err := cfg.Servers(log, demoEntry())
	if err != nil {
		return err
	}
	setup.TuneRuntime(2, len(served)) // much of what lives here is caches of NATS
	policy, err := cfg.LoadPolicy()
	if err != nil {
		return err
	}
	if err := cfg.OwnKey(); err != nil {
		return err
	}
	if err := cfg.OwnSecret(); err != nil {
		return err
	}
	findApprover(cmd, cfg)
	if cfg.FrontDoor.ApproverURL == "" {
		cfg.FrontDoor.ApproverURL = listen.Scheme(cfg.Approver.CertFile) + "://" + cfg.Approver.Listen
		if cfg.Approver.PublicURL != "" {
			cfg.FrontDoor.ApproverURL = cfg.Approver.PublicURL
		}
	}
	u := &fabric{cfg: cfg, log: log, out: stdout, served: served}
	metrics := telemetry.NewMetrics()
	err = lifecycle.Run(cmd.Context(), log,
		cfg.TracesPart("callyard", metrics, log),
		setup.PolicyPart(policy, func() []string { return cfg.Doubts(policy, true, nil) }, log),
		lifecycle.Part{Name: "embedded NATS", Start: u.startNATS, Stop: func(context.Context) error { return u.nats.Close() }},
		cfg.WorkerPart(u.connect, policy, served, metrics, log, func(w *worker.Worker) { u.worker = w }),
		cfg.FrontDoorPart(u.connect, policy, metrics, log, func(d *frontdoor.FrontDoor) { u.door = d }),
		cfg.ApproverPart(u.connect, policy, metrics, log, func(a *approver.Approver) { u.approver = a }),
		lifecycle.Part{Name: "greeting", Start: u.greet, Stop: u.bye},
	)
	if err != nil {
		setup.Fail(stderr, "callyard", err)
		return statusError(lifecycle.ExitCode(err))
	}
	return nil
}

// findApprover gives the approver's pages another port when nobody named one and
// the usual one is taken, so that two fabrics can run on one machine. Callers are
// told where it is.
func findApprover(cmd *cobra.Command, cfg *setup.Config) {
	if flag := cmd.Flags().Lookup("approver-listen"); flag.Changed || cfg.Approver.Listen != approver.Defaults().Listen {
		return
	}
	l, err := net.Listen("tcp", cfg.Approver.Listen)
	if err == nil {
		_ = l.Close() // it was only asked whether it is free
		return
	}
	if l, err = net.Listen("tcp", "127.0.0.1:0"); err == nil {
		cfg.Approver.Listen = l.Addr().String()
		_ = l.Close() // as above
	}
}

// demoEntry is the built-in server, started from this very binary.
func demoEntry() []config.ServerEntry {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return []config.ServerEntry{{ID: "demo", Type: config.TypeStdio, Command: self, Args: []string{"demo-server"}, TrustAnnotations: true}}
}

// fabric is everything that `up` runs.
type fabric struct {
	cfg    *setup.Config
	log    *slog.Logger
	out    io.Writer
	served []worker.Served
	nats   *embedded.Server
	local  bus.Local
	worker *worker.Worker
	door   *frontdoor.FrontDoor

	approver *approver.Approver
	hush     context.CancelFunc
	said     chan struct{}
}

func (u *fabric) startNATS(context.Context) (err error) {
	u.nats, err = embedded.Start(embedded.Options{Dir: u.cfg.Data, Listen: u.cfg.NATS.Listen, Log: u.log})
	return err
}

func (u *fabric) connect(ctx context.Context, name string, keep bool) (*bus.Conn, error) {
	return bus.Connect(ctx, bus.Options{InProcess: u.nats, Name: name, Local: &u.local, KeepWhileDown: keep, Log: u.log})
}

// greet says where things are; the servers' states follow when they are known.
func (u *fabric) greet(ctx context.Context) error {
	base := u.door.URL()
	fmt.Fprintf(u.out, "Callyard %s is up.\n\n  REST API   %s\n  reference  %s/docs\n  approvals  %s\n  data       %s\n", setup.Version(), base, base, u.approver.Base(), u.cfg.Data)
	if address := u.nats.URL(); address != "" {
		fmt.Fprintf(u.out, "  NATS       %s\n", address)
	}
	fmt.Fprintln(u.out)
	ctx, u.hush = context.WithCancel(ctx)
	u.said = make(chan struct{})
	go func() {
		defer close(u.said)
		u.sayServers(ctx, base)
	}()
	return nil
}

func (u *fabric) bye(context.Context) error {
	u.hush()
	<-u.said
	return nil
}

// sayServers prints each server once it is known how it came up, then a call to try.
func (u *fabric) sayServers(ctx context.Context, base string) {
	changes, cancel := u.door.Catalog().Changes()
	defer cancel()
	said := make(map[string]bool)
	for len(said) < len(u.served) {
		for _, s := range u.door.Catalog().Servers() {
			if said[s.ID] || s.State == schema.StateStarting {
				continue
			}
			tools, err := u.door.Catalog().Tools(s.ID)
			if s.State == schema.StateInitialized && err != nil {
				continue // its tools are being read
			}
			said[s.ID] = true
			if s.State == schema.StateInitialized {
				fmt.Fprintf(u.out, "  server %-20s ready, %d tools\n", s.ID, len(tools))
			} else {
				fmt.Fprintf(u.out, "  server %-20s FAILED: %s\n", s.ID, firstLine(s.Error))
			}
		}
		if len(said) == len(u.served) {
			break
		}
		select {
		case <-ctx.Done():
			return
		case <-changes:
		case <-time.After(time.Second):
		}
	}
	fmt.Fprint(u.out, "\n"+u.tryLine(base)+"\nCtrl-C stops it.\n")
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// tryLine is one curl line that works with what is served.
func (u *fabric) tryLine(base string) string {
	for _, s := range u.door.Catalog().Servers() {
		if u.takes(s.ID, "echo", helloArguments) && s.Connected {
			return fmt.Sprintf("Try:  curl -s --json '%s' %s/servers/%s/tools/echo\n", helloArguments, base, url.PathEscape(s.ID))
		}
	}
	for _, s := range u.door.Catalog().Servers() {
		if s.Connected {
			return fmt.Sprintf("Try:  curl -s %s/servers/%s/tools\n", base, url.PathEscape(s.ID))
		}
	}
	return fmt.Sprintf("Try:  curl -s %s/servers\n", base)
}

const helloArguments = `{"message":"hello"}`

// takes says that the server has the tool and that the arguments fit it.
func (u *fabric) takes(server, name, arguments string) bool {
	tool, err := u.door.Catalog().Tool(server, name)
	if err != nil {
		return false
	}
	s, err := u.door.Catalog().Schema(tool)
	return err == nil && len(s.Validate([]byte(arguments))) == 0
}

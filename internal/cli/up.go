package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/internal/approver"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/embedded"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/lifecycle"
	"github.com/callyard/callyard/internal/listen"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/setup"
	"github.com/callyard/callyard/internal/setup/approverrole"
	"github.com/callyard/callyard/internal/setup/frontdoorrole"
	"github.com/callyard/callyard/internal/setup/workerrole"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/webhook"
	"github.com/callyard/callyard/internal/worker"
	"github.com/callyard/callyard/pkg/bus"
)

func upCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run front door, worker, approver and NATS in this process",
		Long: "up runs all of Callyard in one process: front door, worker, approver, and an embedded NATS server with JetStream.\n" +
			"Without --servers (and without MCP_CONFIG_PATH) it serves the demo tools and the built-in tools that need no setting (callyard hub list).",
		Example: "  callyard up\n  callyard up --demo-approvals\n  callyard up --servers mcp.json --listen 127.0.0.1:9000",
		Args:    takes(0, 0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return up(cmd) },
	}
	setup.AddFlags(cmd.Flags(), "servers", "listen", "approver-listen", "data", "redis", "policy", "log-level", "log-format")
	cmd.Flags().Bool("accept-loss", false, "start with a damaged data folder and use its intact records; calls whose record may be lost end as unknown")
	cmd.Flags().Bool("demo-approvals", false, "add a policy, a requester, an approver and a held call to try approvals")
	return cmd
}

func up(cmd *cobra.Command) error {
	stderr, out := newActivity(screenOf(cmd.ErrOrStderr())), screenFor(cmd)
	defer stderr.end()
	var roles everyRole
	p, err := setup.Prepare(cmd.Flags(), stderr, defaultServers(), roles.all()...)
	if err != nil {
		return err
	}
	p.LogFindings()
	u := &fabric{activity: stderr, out: out}
	cfg, log, served, policy := p.Config, p.Log, roles.worker.Served(), p.Policy
	if stderr.out.terminal && !cmd.Flags().Changed("log-level") {
		u.starting.Store(true)
		log = slog.New(startupLog{log.Handler(), &u.starting})
	}
	var demo *approvalDemo
	if wanted, _ := cmd.Flags().GetBool("demo-approvals"); wanted { // the flag is there
		if demo, err = newApprovalDemo(cfg); err != nil {
			return err
		}
	}
	if out.structured() && demo != nil {
		return fail(exitUsage, "--demo-approvals prints instructions for people: omit --output")
	}
	setup.TuneRuntime(len(served))
	u.acceptLoss, _ = cmd.Flags().GetBool("accept-loss") // the flag is there
	if err := ownFiles(cfg, u.acceptLoss); err != nil {
		return err
	}
	roles.approver.Listener = findApprover(cmd, cfg)
	if cfg.FrontDoor.ApproverURL == "" {
		cfg.FrontDoor.ApproverURL = listen.Scheme(cfg.Approver.CertFile) + "://" + cfg.Approver.Listen
		if cfg.Approver.PublicURL != "" {
			cfg.FrontDoor.ApproverURL = cfg.Approver.PublicURL
		}
	}
	if demo != nil {
		policy = demo.policy
	}
	u.cfg, u.demo, u.log, u.served = cfg, demo, log, served
	roles.door.Lost = u.lost
	roles.approver.LostBefore = func() time.Time { return u.lost().Approvals }
	if cfg.FrontDoor.CertFile == "" { // a certificate may not be valid for a loopback address
		roles.approver.FrontDoor = u.ownDoor
	}
	metrics := telemetry.NewMetrics()
	u.metrics = metrics
	reload := p.ReloadPart(metrics)
	if demo != nil {
		reload = lifecycle.Part{Name: "reload"} // the demo's configuration is not in a file
	}
	err = lifecycle.Run(cmd.Context(), log, u.showStarts(
		cfg.TracesPart("callyard", metrics, log),
		lifecycle.Part{Name: "embedded NATS", Start: u.startNATS, Stop: func(context.Context) error { return u.nats.Close() }},
		roles.worker.Part(cfg, u.connect, policy, metrics, log, func(*worker.Worker) {}),
		roles.door.Part(cfg, u.connect, policy, metrics, log, func(d *frontdoor.FrontDoor) { u.door = d }),
		roles.approver.Part(cfg, u.connect, policy, metrics, log, func(a *approver.Approver) { u.approver = a }),
		reload,
		setup.TrimPart(),
		lifecycle.Part{Name: "greeting", Start: u.printBanner, Stop: u.endGreeting},
	)...)
	stderr.end()
	if err != nil {
		return &exitError{code: lifecycle.ExitCode(err), err: err}
	}
	return nil
}

// everyRole holds the set-up of all roles in one process.
type everyRole struct {
	door     frontdoorrole.Setup
	approver approverrole.Setup
	worker   workerrole.Setup
}

func (r *everyRole) all() []setup.RoleSetup {
	return []setup.RoleSetup{r.door.Role(), r.approver.Role(), r.worker.Role()}
}

// findApprover selects another port for the approver's pages if the address is not configured and
// the default port is in use, so that two fabrics can run on one machine. Callers are given the
// actual address. It returns the open listener, because another fabric that starts at the
// same time could take the port. If it returns nil, the approver opens the listener itself.
func findApprover(cmd *cobra.Command, cfg *setup.Config) net.Listener {
	if flag := cmd.Flags().Lookup("approver-listen"); flag.Changed || cfg.Approver.Listen != settings.ApproverDefaults().Listen {
		return nil
	}
	l, err := net.Listen("tcp", cfg.Approver.Listen)
	if err != nil {
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return nil // the approver reports the error
		}
	}
	cfg.Approver.Listen = l.Addr().String()
	return l
}

// defaultServers returns the servers of a fabric without configured servers: the demo server, started from
// this binary, and the built-in servers that need no setting.
func defaultServers() []config.ServerEntry {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return append([]config.ServerEntry{{ID: "demo", Type: config.TypeStdio, Command: self, Args: []string{"demo-server"}, TrustAnnotations: true}}, safeEntries()...)
}

// fabric holds everything that `up` runs.
type fabric struct {
	demo   *approvalDemo // nil without --demo-approvals
	cfg    *setup.Config
	log    *slog.Logger
	out    screen // of the start screen
	served []worker.Served
	nats   *embedded.Server

	activity *activity   // shows the parts that start
	starting atomic.Bool // the start screen is not complete yet; see [startupLog]

	acceptLoss bool
	metrics    *telemetry.Metrics

	local    bus.Local
	door     *frontdoor.FrontDoor
	approver *approver.Approver

	greetCancel context.CancelFunc
	greeted     chan struct{} // closed when the start screen is complete
}

// ownDoor returns the address at which this process reaches its front door.
func (u *fabric) ownDoor() string {
	host, port, err := net.SplitHostPort(u.door.Addr())
	if err != nil {
		return u.door.URL()
	}
	if at := net.ParseIP(host); at == nil || at.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// showStarts makes each part show an activity when it starts.
func (u *fabric) showStarts(parts ...lifecycle.Part) []lifecycle.Part {
	for i := range parts {
		if start, name := parts[i].Start, parts[i].Name; start != nil && name != "greeting" {
			parts[i].Start = func(ctx context.Context) error {
				u.activity.step(i, len(parts), "starting "+name)
				return start(ctx)
			}
		}
	}
	return parts
}

func (u *fabric) startNATS(ctx context.Context) (err error) {
	u.nats, err = embedded.Start(embedded.Options{Dir: u.cfg.Data, Listen: u.cfg.NATS.Listen, AcceptLoss: u.acceptLoss, Check: u.check(ctx), Log: u.log})
	if err != nil {
		return err
	}
	u.logLosses()
	return nil
}

func (u *fabric) connect(ctx context.Context, name string, keep bool) (*bus.Conn, error) {
	return bus.Connect(ctx, bus.Options{InProcess: u.nats, Name: name, Local: &u.local, KeepWhileDown: keep, Log: u.log})
}

// ownFiles sets the key of warrants and the secret of webhooks, which the data folder has if none is
// configured. Lost files are created again only if the loss is accepted.
func ownFiles(cfg *setup.Config, acceptLoss bool) error {
	if !acceptLoss {
		if err := embedded.Missing(cfg.Data, cfg.OwnFiles()...); err != nil {
			return err
		}
	}
	if err := cfg.OwnKey(); err != nil {
		return err
	}
	configured := cfg.Webhooks.SecretsFile != ""
	if err := cfg.OwnSecret(); err != nil || configured {
		return err
	}
	if _, err := webhook.ReadSecrets(cfg.Webhooks.SecretsFile); err != nil {
		return fmt.Errorf("%s %w.\nRestore the file from a backup. If there is none, remove it and start once with --accept-loss: a new secret is created, and receivers need it", cfg.Webhooks.SecretsFile, err)
	}
	return nil
}

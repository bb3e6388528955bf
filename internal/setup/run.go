package setup

import (
	"context"
	"os"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/callyard/callyard/internal/lifecycle"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/bus"
)

// Program is a program of one role.
type Program struct {
	Name string
	// Flags are those of the common flags that it has next to nats, policy, log-level and
	// log-format.
	Flags []string
	Role  RoleSetup
	// Part makes the role's part once the configuration is found good.
	Part func(p *Prepared, connect Connector, m *telemetry.Metrics) lifecycle.Part
	// Probes is the address of the part's probes, "" for none, and Ready what they say
	// once it runs. A role that serves them itself leaves both out.
	Probes func(*settings.File) string
	Ready  func() error
}

// Terminate asks this process to stop, as SIGTERM does.
func Terminate() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGTERM) // a process may always signal itself
}

// Run runs a program of one role until it is told to stop, with the command line of the
// process, and returns the exit status.
func Run(o Program) int {
	fs := pflag.NewFlagSet(o.Name, pflag.ContinueOnError)
	AddFlags(fs, append(o.Flags, "nats", "policy", "log-level", "log-format")...)
	addHealthCheck(fs)
	if goOn, code := parseFlags(fs, os.Args[1:], os.Stdout, os.Stderr); !goOn {
		return code
	}
	if asked, code := healthCheck(fs, o.Name, o.Role.Role); asked {
		return code
	}
	p, err := Prepare(fs, os.Stderr, nil, o.Role)
	if err != nil {
		Fail(os.Stderr, o.Name, err)
		return 2
	}
	p.Tell()
	TuneRuntime(len(p.Servers))
	connect := func(ctx context.Context, name string, keep bool) (*bus.Conn, error) {
		return p.Config.Connect(ctx, name, keep, p.Log)
	}
	metrics := telemetry.NewMetrics()
	parts := []lifecycle.Part{p.Config.TracesPart("callyard-"+o.Name, metrics, p.Log), o.Part(p, connect, metrics), p.ReloadPart(metrics), TrimPart()}
	if o.Probes != nil {
		parts = append(parts, probesPart(o.Probes(&p.Config.File), metrics, p.Log, o.Ready))
	}
	if err = lifecycle.Run(context.Background(), p.Log, parts...); err != nil {
		Fail(os.Stderr, o.Name, err)
	}
	return lifecycle.ExitCode(err)
}

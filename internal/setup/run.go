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
	// Flags are its common flags in addition to nats, policy, log-level and log-format.
	Flags []string
	Role  RoleSetup
	// Part creates the role's part after the configuration was found valid.
	Part func(p *Prepared, connect Connector, m *telemetry.Metrics) lifecycle.Part
	// Probes returns the address of the probes, or "" for none. Ready returns the reason why the
	// running role is not ready. A role that serves its own probes sets neither.
	Probes func(*settings.File) string
	Ready  func() error
}

// Terminate asks this process to stop, as SIGTERM does.
func Terminate() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGTERM) // a process may always signal itself
}

// Run runs a program of one role until it is asked to stop, with the command line of the process,
// and returns the exit status.
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
	p.LogFindings()
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

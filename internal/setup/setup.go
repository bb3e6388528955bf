// Package setup is shared by the programs. It reads, checks and reloads the configuration, and
// provides the common flags, the log, the connection to NATS, and [Run] for programs of one role.
//
// A program either has a configuration without faults, or does not start and lists every fault. The
// package contains no code of a role. Each role has a package below this one, which passes in a
// [RoleSetup], so that only programs of that role link it.
package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/buildinfo"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/kit/tlsfiles"
	"github.com/callyard/callyard/internal/kit/warnings"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/warrant"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Config is the configuration of a process: the configuration file and the state that its parts
// share.
type Config struct {
	settings.File

	// InForce returns the active versions of the files of this process. It is nil if the process
	// reloads none. See [Prepared.ReloadPart].
	InForce func() []schema.InForce

	spans   *telemetry.Traces // see [Config.Spans]
	exposed sync.Once         // the exposure of NATS was checked; see [Config.Connect]
	whole   bool              // this process runs the whole fabric; see [Config.OwnKey]
	own     *warrant.Signer   // trusted for everything; see [Config.OwnKey]
}

// flagKeys maps the common flags to configuration keys.
var flagKeys = [...]struct{ name, key, usage string }{
	{"servers", "worker.servers", "the servers file (mcpServers of Claude Desktop, Cursor, VS Code or MCP Bridge)"},
	{"listen", "front_door.listen", "address of the REST API"},
	{"approver-listen", "approver.listen", "address of the approver's pages"},
	{"data", "data", "folder for persistent data"},
	{"nats", "nats.url", "address of the NATS server or cluster"},
	{"redis", "redis.url", "address of Redis, for confirmation tokens (default: store them in JetStream)"},
	{"policy", "policy", "the policy file, with the rules for held, refused and sandboxed calls"},
	{"log-level", "log.level", "debug, info, warn or error"},
	{"log-format", "log.format", "auto, text or json"},
}

// AddFlags declares --config and the common flags with the given names.
func AddFlags(fs *pflag.FlagSet, names ...string) {
	fs.String("config", "", "the configuration file (YAML)")
	for _, f := range flagKeys {
		for _, name := range names {
			if f.name == name {
				fs.String(f.name, "", f.usage)
			}
		}
	}
}

// clientVariables are CALLYARD_ variables that are not keys of the file.
var clientVariables = []string{"CALLYARD_URL", "CALLYARD_APPROVER_URL", "CALLYARD_KEY", "CALLYARD_KEY_FILE", "CALLYARD_APPROVER_KEY", "CALLYARD_MODEL", "CALLYARD_TEST_*", "CALLYARD_MCPTEST*", "CALLYARD_COOKIE", "CALLYARD_REAPER", "CALLYARD_BENCH_*", "CALLYARD_CONFIG"}

// Load reads the configuration in this order: defaults, file, environment, flags. The error lists
// every fault.
func Load(fs *pflag.FlagSet) (*Config, error) {
	c, _, err := load(fs)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// load is like [Load] but also returns the readable part of a configuration with faults, and the
// place of each key.
func load(fs *pflag.FlagSet) (*Config, config.Places, error) {
	c := &Config{File: settings.Defaults()}
	env := os.Environ()
	src := config.Source{Path: configFile(fs), Env: env, Ignore: clientVariables}
	port, ok, portErr := config.Port(env)
	if ok {
		// Clients of MCP Bridge set the port this way. A flag or key takes precedence.
		c.FrontDoor.Listen = "127.0.0.1:" + port
	}
	for _, k := range flagKeys {
		if f := fs.Lookup(k.name); f != nil && f.Changed {
			src.Flags = append(src.Flags, config.Flag{Name: "--" + k.name, Path: k.key, Value: f.Value.String()})
		}
	}
	places, err := config.Load(src, &c.File)
	c.Worker.Servers = config.FindServersFile(c.Worker.Servers, env)
	c.labelRegion()
	return c, places, errors.Join(err, portErr)
}

// configFile returns the path of the configuration file, or "" if none is named.
func configFile(fs *pflag.FlagSet) string {
	if f := fs.Lookup("config"); f != nil && f.Value.String() != "" {
		return f.Value.String()
	}
	return os.Getenv("CALLYARD_CONFIG")
}

// labelRegion adds the region to the labels of the worker, unless that label is set.
func (c *Config) labelRegion() {
	if c.Region == "" || c.Worker.Labels[schema.RegionLabel] != "" {
		return
	}
	labels := map[string]string{schema.RegionLabel: c.Region}
	maps.Copy(labels, c.Worker.Labels)
	c.Worker.Labels = labels
}

// Logger returns the configured log.
func (c *Config) Logger(w io.Writer) (*slog.Logger, error) {
	return telemetry.NewLogger(w, c.Log.Level, c.Log.Format)
}

// connectFor is the time for which a command tries to reach NATS.
const connectFor = 15 * time.Second

// OpenFor is the time for which a role tries to open its stores. A cluster that has just started
// needs time to elect leaders.
const OpenFor = time.Minute

// Opening returns a context for the opening of stores. It ends after [OpenFor], or later while the
// contents of the stores arrive: with many stored approvals, reading them takes minutes.
func Opening(ctx context.Context) (context.Context, context.CancelFunc) {
	return bus.WithPatience(ctx, OpenFor)
}

// Connector opens a connection to NATS under a name.
type Connector func(ctx context.Context, name string, keep bool) (*bus.Conn, error)

// Connect opens a connection for the named role. keep is [bus.Options.KeepWhileDown].
func (c *Config) Connect(ctx context.Context, name string, keep bool, log *slog.Logger) (*bus.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectFor)
	defer cancel()
	conn, err := c.ConnectAs(ctx, bus.Options{Name: name, Role: roleOf(name), KeepWhileDown: keep, Log: log})
	if err == nil && !conn.AsksForCredential() {
		c.exposed.Do(func() { c.warnExposed(ctx, log) })
	}
	return conn, err
}

// warnExposed warns if NATS accepts connections without credentials and is reachable from other
// machines.
func (c *Config) warnExposed(ctx context.Context, log *slog.Logger) {
	const (
		open      = "NATS requires no credential: " + bus.ExposedDanger
		reachable = "NATS requires no credential and listens beyond this machine: " + bus.ExposedDanger
	)
	for _, e := range bus.Exposures(ctx, c.NATS.URL) {
		switch {
		case e.Err != nil:
			log.Warn(open, "address", e.Address, "fix", bus.ExposedFix, "error", e.Err)
		case !e.Credential && e.Beyond:
			log.Warn(reachable, "address", e.Address, "fix", bus.ExposedFix)
		}
	}
}

// ConnectAs opens a connection with the options and the section nats. It retries until ctx ends.
func (c *Config) ConnectAs(ctx context.Context, o bus.Options) (*bus.Conn, error) {
	n := c.NATS
	o.URL, o.Replicas = n.URL, n.Replicas
	o.CredentialsFile, o.NKeySeedFile, o.User, o.Password, o.Token = n.CredentialsFile, n.NKeySeedFile, n.User, n.Password.Reveal(), n.Token.Reveal()
	var failing warnings.Spacing
	for {
		conn, err := c.connectOnce(ctx, o)
		if err == nil {
			return conn, nil
		}
		if notLogged, ok := failing.Due(time.Now()); ok {
			o.Log.Warn("not connected to NATS yet; retrying", "error", err, "not_logged", notLogged)
		}
		if !sleep.For(time.Second, ctx.Done()) {
			return nil, err
		}
	}
}

func (c *Config) connectOnce(ctx context.Context, o bus.Options) (_ *bus.Conn, err error) {
	if n := &c.NATS; n.CAFile != "" || n.CertFile != "" {
		if o.TLS, err = tlsfiles.Client("NATS", n.CAFile, n.CertFile, n.KeyFile); err != nil {
			return nil, err
		}
	}
	return bus.Connect(ctx, o)
}

// WatchConnection reports in the metrics whether the connection of a role is up and whether
// JetStream stores messages. The returned function stops it.
func WatchConnection(m *telemetry.Metrics, role string, up, storing *bus.Conn) (end func()) {
	connected := m.NATS(role, func() bool { return up.Ready() == nil && storing.Ready() == nil })
	stored := m.JournalWrites(role, storing.NotStoring)
	return func() { connected(); stored() }
}

// ReplaceKeys returns a function that passes new keys to a running role.
func ReplaceKeys[T any, R interface {
	*T
	ReplaceKeys(keys []authn.Key) error
}](running *atomic.Pointer[T]) func([]authn.Key) error {
	return func(keys []authn.Key) error {
		if r := R(running.Load()); r != nil {
			return r.ReplaceKeys(keys)
		}
		return nil
	}
}

// roleOf returns the role from the name of a connection, which starts with it.
func roleOf(name string) string {
	role, _, _ := strings.Cut(name, " ")
	return role
}

// Version returns the version of the build.
func Version() string { return buildinfo.Read().Version }

// Fail prints the error that ends a command.
func Fail(w io.Writer, name string, err error) {
	fmt.Fprintf(w, "%s: %s\n", name, strings.TrimRight(err.Error(), "\n"))
}

// Package setup is what the commands share: the configuration file with its
// sections, the common flags, the log, and the way to NATS.
//
// It promises that a command either has a configuration without a fault or does
// not start, with every fault listed.
package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"github.com/callyard/callyard/internal/approver"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/cache"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/confirm"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/quota"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/worker"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Config is the whole configuration file. Each process reads the sections that
// it needs; one file can serve all of them.
type Config struct {
	// Data is where `callyard up` keeps what must last. Policy is the policy file;
	// without one only the riskLevel of servers counts.
	Data   string `yaml:"data"`
	Policy string `yaml:"policy"`
	// Region is where this process runs. A worker carries it as its label "region", and
	// front doors of the same region send their calls there first.
	Region    string                `yaml:"region"`
	Log       Log                   `yaml:"log"`
	Traces    telemetry.TraceConfig `yaml:"traces"`
	NATS      NATS                  `yaml:"nats"`
	Redis     Redis                 `yaml:"redis"`
	Warrants  Warrants              `yaml:"warrants"`
	Webhooks  frontdoor.Webhooks    `yaml:"webhooks"`
	Limits    quota.Config          `yaml:"limits"`
	Cache     cache.Config          `yaml:"cache"`
	FrontDoor frontdoor.Config      `yaml:"front_door"`
	Approver  approver.Config       `yaml:"approver"`
	Worker    worker.Config         `yaml:"worker"`

	traces  *telemetry.Traces // nil where there are none; see [Config.TracesPart]
	exposed sync.Once         // NATS was looked at; see [Config.Connect]
	whole   bool              // the whole fabric runs in this process; see [Config.OwnKey]

	inForce func() []schema.InForce // what this process goes by; see [Prepared.ReloadPart]
	running running
	lost    func() frontdoor.Lost // nil: nothing was lost
}

// running is what an edit of a file is applied to: each is nil until its part runs.
type running struct {
	servers                 func([]worker.Served)
	pending                 atomic.Pointer[func() []string] // the worker asks from its own start on, while this is set
	callerKeys, peoplesKeys func([]authn.Key) error
}

// Log is the section log.
type Log struct {
	Level  string `yaml:"level"`  // debug, info, warn, error
	Format string `yaml:"format"` // auto, text, json
}

// NATS is the section nats.
type NATS struct {
	URL             string           `yaml:"url"`
	CredentialsFile string           `yaml:"credentials_file"`
	NKeySeedFile    string           `yaml:"nkey_seed_file"`
	User            string           `yaml:"user"`
	Password        telemetry.Secret `yaml:"password"`
	Token           telemetry.Secret `yaml:"token"`
	CAFile          string           `yaml:"ca_file"`
	CertFile        string           `yaml:"cert_file"`
	KeyFile         string           `yaml:"key_file"`
	// Replicas is how many servers of a cluster keep each table (1 to 5).
	Replicas int `yaml:"replicas"`
	// Listen lets other local processes reach the embedded server of `callyard
	// up`; empty means that nobody can.
	Listen string `yaml:"listen"`
}

// Redis is the section redis: where confirmation tokens are kept, limits are shared
// and results are kept. Without it tokens are kept in JetStream, each front door
// takes its share of the limits and keeps results of its own.
type Redis struct {
	URL string `yaml:"url"` // redis://host:6379/0, rediss://…, unix:///path
	// Addresses with Master are those of Sentinels, with Cluster those of a cluster.
	Addresses            []string `yaml:"addresses"`
	Master               string   `yaml:"master"`
	Cluster              bool     `yaml:"cluster"`
	Username             string   `yaml:"username"`
	PasswordFile         string   `yaml:"password_file"`
	SentinelUsername     string   `yaml:"sentinel_username"`
	SentinelPasswordFile string   `yaml:"sentinel_password_file"`
	TLS                  bool     `yaml:"tls"`
	CAFile               string   `yaml:"ca_file"`
	CertFile             string   `yaml:"cert_file"`
	KeyFile              string   `yaml:"key_file"`
}

// Validate returns the settings that cannot be honoured; see package config.
func (l Log) Validate() []config.Fault {
	if _, err := telemetry.NewLogger(io.Discard, l.Level, "json"); err != nil {
		return []config.Fault{config.Faultf("level", "%v.", err)}
	}
	if _, err := telemetry.NewLogger(io.Discard, l.Level, l.Format); err != nil {
		return []config.Fault{config.Faultf("format", "%v.", err)}
	}
	return nil
}

// Validate returns the settings that cannot be honoured; see package config.
func (n NATS) Validate() []config.Fault {
	var faults []config.Fault
	if n.Replicas < 1 || n.Replicas > 5 {
		faults = append(faults, config.Faultf("replicas", "must be from 1 to 5."))
	}
	for address := range strings.SplitSeq(n.URL, ",") {
		address = strings.TrimSpace(address)
		if !strings.Contains(address, "://") {
			address = "nats://" + address
		}
		if u, err := url.Parse(address); err != nil || u.Hostname() == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
			// It may hold a password, so it is not repeated.
			faults = append(faults, config.Faultf("url", "has an entry that is no address of a NATS server; write nats://host:4222, or tls://, ws:// and wss://, separated by commas."))
			break
		}
	}
	if n.Listen != "" {
		if wrong := config.AddressFault(n.Listen); wrong != "" {
			faults = append(faults, config.Faultf("listen", "%s", wrong))
		}
	}
	return faults
}

// Validate returns the settings that cannot be honoured; see package config.
func (r Redis) Validate() []config.Fault {
	if r.URL != "" && len(r.Addresses) > 0 {
		return []config.Fault{config.Faultf("addresses", "and url are both set; keep one.")}
	}
	if r.URL != "" {
		if _, err := confirm.ParseRedis(r.URL); err != nil {
			return []config.Fault{config.Faultf("url", "%v.", err)}
		}
	}
	return nil
}

// options returns how to reach Redis, nil where there is none.
func (r Redis) options() *confirm.RedisOptions {
	o := confirm.RedisOptions{Addresses: r.Addresses}
	if r.URL != "" {
		parsed, err := confirm.ParseRedis(r.URL)
		if err != nil {
			return nil // Validate has said so
		}
		o = parsed
	}
	if len(o.Addresses) == 0 {
		return nil
	}
	o.Master, o.Cluster, o.TLS = r.Master, r.Cluster, o.TLS || r.TLS
	if r.Username != "" {
		o.Username = r.Username
	}
	o.PasswordFile, o.SentinelUsername, o.SentinelPasswordFile = r.PasswordFile, r.SentinelUsername, r.SentinelPasswordFile
	o.CAFile, o.CertFile, o.KeyFile = r.CAFile, r.CertFile, r.KeyFile
	return &o
}

// Defaults returns the configuration of a command that was told nothing.
func Defaults() Config {
	return Config{
		Data: "callyard-data", Log: Log{Level: "info", Format: "auto"}, Traces: telemetry.TraceDefaults(),
		NATS: NATS{URL: "nats://127.0.0.1:4222", Replicas: 1}, Cache: cache.Defaults(), FrontDoor: frontdoor.Defaults(), Approver: approver.Defaults(), Worker: worker.Defaults(),
	}
}

// flagKeys maps the common flags to the keys that they set.
var flagKeys = [...]struct{ name, key, usage string }{
	{"servers", "worker.servers", "the servers file (mcpServers of Claude Desktop, Cursor, VS Code or MCP Bridge)"},
	{"listen", "front_door.listen", "address of the REST API"},
	{"approver-listen", "approver.listen", "address of the approver's pages"},
	{"data", "data", "folder for what must last"},
	{"nats", "nats.url", "address of the NATS server or cluster"},
	{"redis", "redis.url", "address of Redis, for confirmation tokens (default: they are kept in JetStream)"},
	{"policy", "policy", "the policy file, which says what is held, refused or boxed"},
	{"log-level", "log.level", "debug, info, warn or error"},
	{"log-format", "log.format", "auto, text or json"},
}

// AddFlags declares --config and the named ones of the common flags.
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

// clientVariables are CALLYARD_ variables that are no keys of the file.
var clientVariables = []string{"CALLYARD_URL", "CALLYARD_APPROVER_URL", "CALLYARD_KEY", "CALLYARD_KEY_FILE", "CALLYARD_TEST_*", "CALLYARD_MCPTEST*", "CALLYARD_COOKIE", "CALLYARD_GUARD", "CALLYARD_BENCH_*", "CALLYARD_CONFIG"}

// Load reads the configuration: defaults, file, environment, flags, in that
// order. The error lists every fault.
func Load(fs *pflag.FlagSet) (*Config, error) {
	c, _, err := load(fs)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// load is [Load] that also returns what could be read where there is an error, and
// where each key was set.
func load(fs *pflag.FlagSet) (*Config, config.Places, error) {
	c := Defaults()
	env := os.Environ()
	src := config.Source{Path: configFile(fs), Env: env, Ignore: clientVariables}
	port, ok, portErr := config.Port(env)
	if ok {
		// MCP Bridge's clients set the port this way; a flag or key still wins.
		c.FrontDoor.Listen = "127.0.0.1:" + port
	}
	for _, k := range flagKeys {
		if f := fs.Lookup(k.name); f != nil && f.Changed {
			src.Flags = append(src.Flags, config.Flag{Name: "--" + k.name, Path: k.key, Value: f.Value.String()})
		}
	}
	places, err := config.LoadPlaces(src, &c)
	c.Worker.Servers = config.FindServersFile(c.Worker.Servers, env)
	c.labelRegion()
	return &c, places, errors.Join(err, portErr)
}

// configFile is the path of the configuration file, "" where none is named.
func configFile(fs *pflag.FlagSet) string {
	if f := fs.Lookup("config"); f != nil && f.Value.String() != "" {
		return f.Value.String()
	}
	return os.Getenv("CALLYARD_CONFIG")
}

// labelRegion has the worker carry the region; a label that is set already counts.
func (c *Config) labelRegion() {
	if c.Region == "" || c.Worker.Labels[dispatch.RegionLabel] != "" {
		return
	}
	labels := map[string]string{dispatch.RegionLabel: c.Region}
	maps.Copy(labels, c.Worker.Labels)
	c.Worker.Labels = labels
}

// Logger returns the log that the configuration asks for. What the Redis client has to
// say goes there too from then on.
func (c *Config) Logger(w io.Writer) (*slog.Logger, error) {
	log, err := telemetry.NewLogger(w, c.Log.Level, c.Log.Format)
	if err == nil {
		confirm.LogRedis(log)
	}
	return log, err
}

// connectFor is how long a command tries to reach NATS before it gives up.
const connectFor = 15 * time.Second

// openFor is how long a role tries to open what it stores. A cluster that has just
// begun takes a while to choose who leads.
const openFor = time.Minute

// Connect opens a connection as the named role. keep is [bus.Options.KeepWhileDown].
func (c *Config) Connect(ctx context.Context, name string, keep bool, log *slog.Logger) (*bus.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectFor)
	defer cancel()
	conn, err := c.connect(ctx, bus.Options{Name: name, Role: roleOf(name), KeepWhileDown: keep, Log: log})
	if err == nil && !conn.AsksForCredential() {
		c.exposed.Do(func() { c.warnExposed(ctx, log) })
	}
	return conn, err
}

// warnExposed warns when NATS lets in whoever reaches it and is reached from elsewhere.
func (c *Config) warnExposed(ctx context.Context, log *slog.Logger) {
	const (
		open      = "NATS asks for no credential: " + bus.ExposedDanger
		reachable = "NATS asks for no credential and listens beyond this machine: " + bus.ExposedDanger
	)
	found, err := bus.Exposures(ctx, c.NATS.URL)
	if err != nil {
		log.Warn(open, "fix", bus.ExposedFix, "error", err)
		return
	}
	for _, e := range found {
		if !e.Credential && e.Beyond {
			log.Warn(reachable, "address", e.Address, "fix", bus.ExposedFix)
		}
	}
}

// connect opens a connection with the options and the section nats, trying until ctx ends.
func (c *Config) connect(ctx context.Context, o bus.Options) (*bus.Conn, error) {
	n := c.NATS
	o.URL, o.Replicas = n.URL, n.Replicas
	o.CredentialsFile, o.NKeySeedFile, o.User, o.Password, o.Token = n.CredentialsFile, n.NKeySeedFile, n.User, n.Password.Reveal(), n.Token.Reveal()
	o.CAFile, o.CertFile, o.KeyFile = n.CAFile, n.CertFile, n.KeyFile
	for {
		conn, err := bus.Connect(ctx, o)
		if err == nil {
			return conn, nil
		}
		o.Log.Warn("NATS is not reachable yet; trying again", "error", err)
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(time.Second):
		}
	}
}

// roleOf is the role of a process in the name of its connection, which begins with it.
func roleOf(name string) string {
	role, _, _ := strings.Cut(name, " ")
	return role
}

// Version is the version of the build.
func Version() string { return telemetry.Version() }

// Fail prints why a command cannot go on.
func Fail(w io.Writer, name string, err error) {
	fmt.Fprintf(w, "%s: %s\n", name, strings.TrimRight(err.Error(), "\n"))
}

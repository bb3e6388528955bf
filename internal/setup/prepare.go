package setup

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/reload"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Role is a set of the roles that a process runs, joined with |.
type Role int

// Roles.
const (
	FrontDoor Role = 1 << iota
	Approver
	Worker
	// All is the set of `callyard up` and `callyard config check`.
	All = FrontDoor | Approver | Worker
)

// RoleSetup adds the set-up of one role to that of every process.
type RoleSetup struct {
	Role Role
	// Check returns the faults of the configuration that only the role can find. Their paths are
	// relative to the root of the file.
	Check func(*settings.File) []config.Fault
	// Serve selects the entries of the servers file that a worker holds. Pending names the servers
	// whose edit the running worker has not applied yet. Only a worker has them.
	Serve   func(w *settings.Worker, entries []config.ServerEntry) (Held, error)
	Pending func() []string
	// ReplaceKeys replaces the active API keys. Roles that authenticate callers have it.
	ReplaceKeys func([]authn.Key) error
}

// Held is the set of servers that a worker holds.
type Held struct {
	// Servers are the selected entries. Troubles are reasons why one of them cannot start on this
	// machine.
	Servers  []config.ServerEntry
	Troubles []config.Fault
	// Apply activates the servers, also in a running worker.
	Apply func()
}

// sections are the root keys of the file that only one role uses.
var sections = map[string]Role{
	"front_door": FrontDoor, "webhooks": FrontDoor, "limits": FrontDoor, "cache": FrontDoor,
	"approver": Approver, "worker": Worker, "redis": FrontDoor | Approver,
}

// Prepared is a valid configuration and the content of the files that it names.
type Prepared struct {
	Config *Config
	Log    *slog.Logger
	// Servers are the servers of a worker, and Policy is the policy. Each is nil if none is named.
	Servers []config.ServerEntry
	Policy  *risk.Holder
	// Troubles do not prevent a start but disable what they name, such as a server that cannot start
	// or an approval that nobody can give.
	Troubles []config.Fault
	// Notes and Doubts are further remarks for the operator.
	Notes  []string
	Doubts []string

	sources  sources
	held     Held              // the source of Servers
	here     bool              // the approvers are configured in this file
	people   settings.Approver // the keys that define the members of groups
	reloader *reload.Reloader
	stamps   map[string]reload.Stamp // of the files of parts, taken before they were read
	// The troubles of the active version, with their places. The reloader owns them once it runs.
	serverTroubles, policyTroubles []config.Fault
}

// sources are the inputs of a configuration, kept to read them again.
type sources struct {
	flags    *pflag.FlagSet
	role     Role
	fallback []config.ServerEntry
	roles    []RoleSetup
}

// host returns the set-up of the worker.
func (s sources) host() *RoleSetup {
	for i := range s.roles {
		if s.roles[i].Serve != nil {
			return &s.roles[i]
		}
	}
	return nil
}

// replaceKeys replaces the active API keys if the process runs the role.
func (s sources) replaceKeys(role Role, keys []authn.Key) error {
	for i := range s.roles {
		if s.roles[i].Role == role {
			return s.roles[i].ReplaceKeys(keys)
		}
	}
	return nil
}

// Prepare reads the configuration, the servers file, the policy and the key files of the roles,
// and checks them against each other and this machine. The error is a *config.Faults with
// everything that prevents a process of these roles from starting. `callyard config check` and
// every start use it. Faults that only disable something are in Troubles. fallback are the servers
// of a worker without configured servers. The log goes to w.
func Prepare(flags *pflag.FlagSet, w io.Writer, fallback []config.ServerEntry, roles ...RoleSetup) (*Prepared, error) {
	src := sources{flags: flags, fallback: fallback, roles: roles}
	for _, r := range roles {
		src.role |= r.Role
	}
	p, faults := inspect(src)
	if p.held.Apply != nil {
		p.held.Apply()
	}
	if log, err := p.Config.Logger(w); err == nil { // otherwise the section log is among the faults
		p.Log = log
	}
	if len(faults) > 0 {
		return p, &config.Faults{List: faults}
	}
	p.reloader = reload.New(p.Log, p.parts()...)
	p.Config.InForce = p.reloader.State
	return p, nil
}

// PrepareWith is [Prepare] for a program without a command line. values holds common flags and
// "config", by name.
func PrepareWith(values map[string]string, w io.Writer, roles ...RoleSetup) (*Prepared, error) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddFlags(fs, slices.Collect(maps.Keys(values))...)
	for name, value := range values {
		if err := fs.Set(name, value); err != nil {
			return nil, fmt.Errorf("setting %s: %w", name, err)
		}
	}
	return Prepare(fs, w, nil, roles...)
}

// LogFindings logs the findings of Prepare that did not prevent the start.
func (p *Prepared) LogFindings() {
	for _, note := range p.Notes {
		p.Log.Info("servers file", "note", note)
	}
	p.tell(p.Troubles, p.Doubts)
}

func (p *Prepared) tell(troubles []config.Fault, doubts []string) {
	for _, t := range troubles {
		p.Log.Error("the configuration has a fault; the affected setting does not work", "fault", t.String())
	}
	for _, doubt := range doubts {
		p.Log.Warn("the policy has a probable mistake", "policy", doubt)
	}
}

// inspect runs all stages, even if an earlier one found faults.
func inspect(src sources) (*Prepared, []config.Fault) {
	stamps := map[string]reload.Stamp{schema.PartKeys: reload.StampOf(src.keyFiles()...)}
	in := inspectConfig(src)
	c := in.p.Config
	stamps[schema.PartServers], stamps[schema.PartPolicy] = reload.StampOf(c.Worker.Servers), reload.StampOf(c.policyFiles()...)
	in.p.stamps = stamps
	if src.role&Worker != 0 {
		in.servers(src.fallback)
	}
	in.p.here = in.role == Approver || in.role == All && !in.places.Has("nats.url")
	in.policy()
	return in.p, in.faults
}

// inspectConfig reads the configuration file for inspect.
func inspectConfig(src sources) *inspection {
	c, places, err := load(src.flags)
	in := &inspection{p: &Prepared{Config: c, people: c.Approver, sources: src}, places: places, role: src.role}
	in.add("", err)
	in.sections()
	in.files()
	in.warrants()
	return in
}

type inspection struct {
	p      *Prepared
	places config.Places
	role   Role
	faults []config.Fault
}

// add records the faults of an error: those of a file with their places, any other at the key.
func (in *inspection) add(key string, err error) {
	if err == nil {
		return
	}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range several.Unwrap() {
			in.add(key, e)
		}
		return
	}
	if file, ok := errors.AsType[*config.Faults](err); ok {
		in.faults = append(in.faults, file.List...)
		return
	}
	if policy, ok := errors.AsType[*risk.Faults](err); ok {
		for line := range strings.SplitSeq(policy.Error(), "\n") {
			in.faults = append(in.faults, config.Fault{Message: line})
		}
		return
	}
	f := config.Fault{Path: key, Message: err.Error()}
	if key != "" {
		f.Where = in.places.Of(key)
	}
	in.faults = append(in.faults, f)
}

// known reports whether the key already has a fault.
func (in *inspection) known(key string) bool {
	return slices.ContainsFunc(in.faults, func(f config.Fault) bool { return f.Path == key })
}

// sections runs the checks of each role.
func (in *inspection) sections() {
	var faults []config.Fault
	for _, r := range in.p.sources.roles {
		if r.Check != nil {
			faults = append(faults, r.Check(&in.p.Config.File)...)
		}
	}
	for _, f := range faults {
		if !in.known(f.Path) {
			f.Where = in.places.Of(f.Path)
			in.faults = append(in.faults, f)
		}
	}
}

// files checks every file that a section of the role names.
func (in *inspection) files() {
	c := in.p.Config
	keys, err := config.FileKeys(&c.File)
	in.add("", err)
	for _, k := range keys {
		root, _, _ := strings.Cut(k.Path, ".")
		if role, own := sections[root]; own && role&in.role == 0 || root == "warrants" || in.known(k.Path) {
			continue
		}
		text, err := os.ReadFile(k.File)
		switch {
		case err != nil:
			in.add(k.Path, errors.New("cannot be read: "+err.Error()+"."))
		case strings.HasSuffix(k.Path, "ca_file") && !x509.NewCertPool().AppendCertsFromPEM(text):
			in.add(k.Path, errors.New("contains no certificate in PEM format."))
		}
	}
	for _, pair := range []struct {
		key, cert, file string
		role            Role
	}{
		{"front_door.cert_file", c.FrontDoor.CertFile, c.FrontDoor.KeyFile, FrontDoor}, {"approver.cert_file", c.Approver.CertFile, c.Approver.KeyFile, Approver},
		{"nats.cert_file", c.NATS.CertFile, c.NATS.KeyFile, All}, {"redis.cert_file", c.Redis.CertFile, c.Redis.KeyFile, FrontDoor | Approver},
	} {
		if pair.cert == "" || pair.file == "" || pair.role&in.role == 0 || in.known(pair.key) || in.known(strings.Replace(pair.key, "cert_file", "key_file", 1)) {
			continue
		}
		if _, err := tls.LoadX509KeyPair(pair.cert, pair.file); err != nil {
			in.add(pair.key, errors.New("does not match its key_file: "+err.Error()+"."))
		}
	}
	if in.role == All {
		if info, err := os.Stat(c.Data); err == nil && !info.IsDir() {
			in.add("data", errors.New("is a file, but must be a folder; use another path."))
		}
	}
}

// warrants reads the keys of the role's warrants.
func (in *inspection) warrants() {
	c := in.p.Config
	if in.role&(FrontDoor|Approver) != 0 {
		_, err := c.Signer()
		in.keyFaults(err)
	}
	if in.role&Worker != 0 {
		_, err := c.Trust()
		in.keyFaults(err)
	}
}

// keyFaults records faults that start with the key that they belong to.
func (in *inspection) keyFaults(err error) {
	if err == nil {
		return
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		key, message, _ := strings.Cut(line, ": ")
		in.add(key, errors.New(message))
	}
}

// servers reads the servers file and selects the servers of this worker. Without a file and
// without MCP_SERVER_ variables, it uses fallback.
func (in *inspection) servers(fallback []config.ServerEntry) {
	c, p := in.p.Config, in.p
	if file := c.Worker.Servers; file != "" {
		if _, err := os.Stat(file); err != nil {
			in.add("worker.servers", errors.New("cannot be read: "+err.Error()+"."))
			return
		}
	}
	found, err := config.LoadServers(c.Worker.Servers, os.Environ())
	if err != nil {
		in.add("", err)
		return
	}
	p.Notes = found.Notes
	if c.Worker.Servers == "" && len(found.Entries) == 0 {
		found.Entries = fallback
	}
	p.held, err = p.sources.host().Serve(&c.Worker, found.Entries)
	p.Servers, p.serverTroubles = p.held.Servers, p.held.Troubles
	if err != nil {
		in.add("", err)
	} else if len(p.Servers) == 0 && !c.Worker.APIServers {
		in.noServers()
	}
	p.Troubles = append(p.Troubles, p.serverTroubles...)
}

// noServers records that this worker has no servers. A worker process does not start without
// servers; `callyard up` does, and offers no tools.
func (in *inspection) noServers() {
	file := in.p.Config.Worker.Servers
	switch f := (config.Fault{Where: file + ":1:1", Message: "contains no server for this worker: add one, or set worker.api_servers. Disabled entries, and entries with labels that the worker does not have, do not count."}); {
	case file == "" && in.role == Worker && in.known(""): // a file that could not be read may name the servers
	case file == "" && in.role == Worker:
		in.add("worker.servers", errNoServers)
	case file != "" && in.role == Worker:
		in.faults = append(in.faults, f)
	case file != "":
		in.p.Troubles = append(in.p.Troubles, f)
	}
}

var errNoServers = errors.New("there is no server for this worker: set a servers file with --servers, or set worker.api_servers")

// policy reads the policy and checks it against the approvers and the servers.
func (in *inspection) policy() {
	c, p := in.p.Config, in.p
	if c.Policy == "" {
		return
	}
	policy, err := risk.ReadFile(c.Policy)
	if err != nil {
		if _, statErr := os.Stat(c.Policy); statErr != nil {
			err = errors.New("cannot be read: " + statErr.Error() + ".")
		}
		in.add("policy", err)
		return
	}
	p.Policy = risk.NewHolder(policy)
	p.Policy.ReplaceAll(policy, in.tenantPolicies())
	p.policyTroubles, p.Doubts = p.doubts()
	p.Troubles = append(p.Troubles, p.policyTroubles...)
}

// tenantPolicies reads the policies of tenants.
func (in *inspection) tenantPolicies() map[schema.TenantID]*risk.Policy {
	all := make(map[schema.TenantID]*risk.Policy)
	for id, t := range in.p.Config.Tenants {
		if t.Policy == "" {
			continue
		}
		policy, err := risk.ReadFile(t.Policy)
		if err != nil {
			in.add("tenants."+string(id)+".policy", err)
			continue
		}
		all[id] = policy
	}
	return all
}

// doubts sorts likely mistakes of the active policy into troubles and doubts. A file that names no
// NATS server is one of `callyard up`, so it also configures the approvers, like the file of an
// approver.
func (p *Prepared) doubts() (troubles []config.Fault, doubts []string) {
	c := p.Config
	for _, d := range p.Policy.Current().Doubts(risk.Known{Groups: members(p.people, p.here), Servers: names(p.Servers)}) {
		f := config.Fault{Where: place(c.Policy, d.Line, d.Column), Path: d.Path, Message: d.Message}
		if d.Expires {
			f.Message += " A call that requires it can only expire."
			troubles = append(troubles, f)
			continue
		}
		doubts = append(doubts, f.String())
	}
	return troubles, doubts
}

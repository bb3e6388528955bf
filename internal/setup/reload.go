package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/charmbracelet/x/term"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/lifecycle"
	"github.com/callyard/callyard/internal/reload"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// parts are the files that this process reloads. Keys come first and the policy last, because the
// policy refers to groups and servers of the others.
func (p *Prepared) parts() []reload.Part {
	c, src := p.Config, p.sources
	var parts []reload.Part
	if files := src.keyFiles(); len(files) > 0 {
		parts = append(parts, reload.Part{Name: schema.PartKeys, Files: files, Seen: p.stamps[schema.PartKeys], Version: src.role.keysVersion(c), Read: p.keysReader()})
	}
	if file := c.Worker.Servers; file != "" && src.role&Worker != 0 {
		entries := entryVersions(p.Servers)
		parts = append(parts, reload.Part{
			Name: schema.PartServers, Files: []string{file}, Seen: p.stamps[schema.PartServers], Version: versionOf(entries), Entries: entries, Read: p.readServers,
			Pending: src.host().Pending,
		})
	}
	if c.Policy != "" {
		parts = append(parts, reload.Part{Name: schema.PartPolicy, Files: c.policyFiles(), Seen: p.stamps[schema.PartPolicy], Version: p.Policy.Version(), Read: p.readPolicy})
	}
	return parts
}

// policyFiles are the files of the policy and of the tenants' policies.
func (c *Config) policyFiles() []string {
	files := []string{c.Policy}
	for _, id := range slices.Sorted(maps.Keys(c.Tenants)) {
		if file := c.Tenants[id].Policy; file != "" {
			files = append(files, file)
		}
	}
	return files
}

// keyFiles are the files that hold API keys of the role: the configuration file, and the files that
// the variables of keys name.
func (s sources) keyFiles() []string {
	if s.role&(FrontDoor|Approver) == 0 {
		return nil
	}
	files := []string{configFile(s.flags)}
	if s.role&FrontDoor != 0 {
		files = append(files, os.Getenv("CALLYARD_FRONT_DOOR_KEYS_FILE"))
	}
	if s.role&Approver != 0 {
		files = append(files, os.Getenv("CALLYARD_APPROVER_KEYS_FILE"))
	}
	return slices.DeleteFunc(files, func(file string) bool { return file == "" })
}

// ReloadPart reloads the policy, the servers file and the API keys when their files change, and all
// of them at SIGHUP. It must start after the parts that the files apply to.
func (p *Prepared) ReloadPart(m *telemetry.Metrics) lifecycle.Part {
	var end context.CancelFunc
	var unwatch func()
	done := make(chan struct{})
	again := make(chan os.Signal, 1)
	return lifecycle.Part{
		Name: "reload",
		Start: func(ctx context.Context) error {
			ctx, end = context.WithCancel(ctx) //nolint:gosec // Stop calls it
			unwatch = m.Configuration(p.reloader.State)
			if !term.IsTerminal(os.Stdin.Fd()) { // on a terminal, SIGHUP means that the terminal was closed
				signal.Notify(again, syscall.SIGHUP)
			}
			go func() {
				defer close(done)
				p.reloader.Run(ctx, again)
			}()
			return nil
		},
		Stop: func(context.Context) error {
			signal.Stop(again)
			unwatch()
			end()
			<-done
			return nil
		},
	}
}

// keysReader returns a function that reloads the configuration file and activates its API keys.
// Other changes take effect at the next start; keysReader logs them once.
func (p *Prepared) keysReader() func() (reload.Next, error) {
	role, now, told := p.sources.role, p.Config, withoutKeys(p.Config)
	hadCallers, hadPeople := len(now.FrontDoor.Keys) > 0, len(now.Approver.Keys) > 0
	return func() (reload.Next, error) {
		in := inspectConfig(p.sources)
		c := in.p.Config
		for _, gone := range []struct {
			key string
			is  bool
		}{{"front_door.keys", role&FrontDoor != 0 && hadCallers && len(c.FrontDoor.Keys) == 0}, {"approver.keys", role&Approver != 0 && hadPeople && len(c.Approver.Keys) == 0}} {
			if gone.is {
				in.add(gone.key, errors.New("is empty now, and without keys no authentication is required; if this is intended, restart the process."))
			}
		}
		if len(in.faults) > 0 {
			return reload.Next{}, &config.Faults{List: in.faults}
		}
		return reload.Next{Version: role.keysVersion(c), Apply: func() {
			hadCallers, hadPeople = len(c.FrontDoor.Keys) > 0, len(c.Approver.Keys) > 0
			if err := errors.Join(p.sources.replaceKeys(FrontDoor, c.FrontDoor.Keys), p.sources.replaceKeys(Approver, c.Approver.Keys)); err != nil {
				p.Log.Error("valid API keys cannot be applied", "error", err)
			}
			p.people.Keys = c.Approver.Keys
			p.again()
			next := withoutKeys(c)
			if changed, err := config.Differing(told, next); err != nil {
				p.Log.Error("other changes in the configuration file cannot be determined", "error", err)
			} else if len(changed) > 0 {
				p.Log.Warn("changed settings take effect at the next start", "settings", changed)
			}
			told = next
		}}, nil
	}
}

func (p *Prepared) readServers() (reload.Next, error) {
	in := &inspection{p: &Prepared{Config: p.Config, sources: p.sources}, role: p.sources.role}
	in.servers(nil)
	in.addNew(p.serverTroubles, in.p.serverTroubles)
	if len(in.faults) > 0 {
		return reload.Next{}, &config.Faults{List: in.faults}
	}
	entries := entryVersions(in.p.Servers)
	return reload.Next{Version: versionOf(entries), Entries: entries, Apply: func() {
		p.Servers, p.held, p.serverTroubles = in.p.Servers, in.p.held, in.p.serverTroubles
		for _, note := range in.p.Notes {
			p.Log.Info("servers file", "note", note)
		}
		p.held.Apply()
		p.again()
	}}, nil
}

func (p *Prepared) readPolicy() (reload.Next, error) {
	in := &inspection{p: &Prepared{Config: p.Config, Servers: p.Servers, people: p.people, here: p.here, sources: p.sources}, role: p.sources.role}
	in.policy()
	in.addNew(p.policyTroubles, in.p.Troubles)
	if len(in.faults) > 0 {
		return reload.Next{}, &config.Faults{List: in.faults}
	}
	next := in.p.Policy
	return reload.Next{Version: next.Version(), Apply: func() {
		p.Policy.Become(next)
		p.policyTroubles = in.p.Troubles
		p.tell(nil, in.p.Doubts)
	}}, nil
}

// again checks the policy against new groups and servers.
func (p *Prepared) again() {
	if p.Policy == nil {
		return
	}
	troubles, doubts := p.doubts()
	if !slices.EqualFunc(troubles, p.policyTroubles, sameFault) {
		p.tell(troubles, doubts)
	}
	p.policyTroubles = troubles
}

func sameFault(a, b config.Fault) bool { return a.Path == b.Path && a.Message == b.Message }

// addNew turns troubles that did not exist before into faults. A process that already runs with a
// server that cannot start still accepts an edit of another server.
func (in *inspection) addNew(before, now []config.Fault) {
	for _, t := range now {
		if !slices.ContainsFunc(before, func(b config.Fault) bool { return sameFault(b, t) }) {
			in.faults = append(in.faults, t)
		}
	}
}

// keysVersion identifies the keys of a role.
func (r Role) keysVersion(c *Config) string {
	var lists [][]authn.Key
	if r&FrontDoor != 0 {
		lists = append(lists, c.FrontDoor.Keys)
	}
	if r&Approver != 0 {
		lists = append(lists, c.Approver.Keys)
	}
	return versionOf(lists)
}

// entryVersions identifies the entries of servers. It leaves out the values of variables, headers and
// credentials, which are secret: a digest of a short secret reveals it.
func entryVersions(servers []config.ServerEntry) map[string]string {
	// These have no methods, because those of the originals leave out what logs do not show.
	type (
		plain      config.ServerEntry
		docker     config.Docker
		bubblewrap config.Bubblewrap
	)
	versions := make(map[string]string, len(servers))
	for i := range servers {
		e := struct {
			plain
			Docker     *docker
			Bubblewrap *bubblewrap
		}{plain: plain(servers[i])}
		e.Where, e.Env, e.Headers = "", namesOnly(e.Env), namesOnly(e.Headers)
		if e.plain.Docker != nil {
			d := docker(*e.plain.Docker)
			d.Env = namesOnly(d.Env)
			e.Docker = &d
		}
		if e.plain.Bubblewrap != nil {
			b := bubblewrap(*e.plain.Bubblewrap)
			b.Env = namesOnly(b.Env)
			e.Bubblewrap = &b
		}
		versions[e.ID] = versionOf(e)
	}
	return versions
}

func namesOnly(m map[string]string) map[string]string {
	names := make(map[string]string, len(m))
	for name := range m {
		names[name] = ""
	}
	return names
}

// shortVersion is the length of a version: long enough to be unique and short enough to read.
const shortVersion = 12

func versionOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		text = fmt.Append(nil, err) // no value passed here can fail
	}
	_, sum, _ := strings.Cut(schema.Digest(text), ":")
	return sum[:min(len(sum), shortVersion)]
}

// withoutKeys copies the configuration without the reloaded parts.
func withoutKeys(c *Config) *settings.File {
	rest := c.File
	rest.FrontDoor.Keys, rest.Approver.Keys = nil, nil
	return &rest
}
